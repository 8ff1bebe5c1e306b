//! Freezes issued documents: the exact bytes of the content, and its position in the hash chain of its series.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument};
use billing_domain::ports::StoreResult;
use billing_domain::refs::{EntityRef, OrganizationId};
use diesel::prelude::*;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::stored;
use crate::arrays::{Columns, InsertRows, column};
use crate::json::FrozenRef;
use crate::row::to_json;
use crate::schema::{issued_documents, number_series};
use crate::sql_types::{Bound, JsonText};
use crate::text_value::TextValue as _;
use crate::tx::{Connection, Transaction, with_conn};

/// The frozen content of a document, and its position in the chain of its series.
#[derive(Insertable)]
#[diesel(table_name = issued_documents, treat_none_as_default_value = false)]
struct NewSeal<'a> {
    document_id: Bound<Uuid>,
    customer_id: Bound<Uuid>,
    organization_id: Bound<Uuid>,
    entity_ref: &'a str,
    kind: String,
    chain_position: i64,
    previous_hash: Vec<u8>,
    content_hash: Vec<u8>,
    content: JsonText,
    issued_at: Bound<Timestamp>,
}

impl NewSeal<'_> {
    /// Returns the columns for PostgreSQL.
    fn columns(rows: &[Self]) -> Columns {
        vec![
            ("document_id", column(rows, |row| row.document_id.0)),
            ("customer_id", column(rows, |row| row.customer_id.0)),
            ("organization_id", column(rows, |row| row.organization_id.0)),
            ("entity_ref", column(rows, |row| row.entity_ref.to_owned())),
            ("kind", column(rows, |row| row.kind.clone())),
            ("chain_position", column(rows, |row| row.chain_position)),
            ("previous_hash", column(rows, |row| row.previous_hash.clone())),
            ("content_hash", column(rows, |row| row.content_hash.clone())),
            ("content", column(rows, |row| row.content.0.clone())),
            ("issued_at", column(rows, |row| row.issued_at.0)),
        ]
    }
}

impl Transaction<'_> {
    /// Writes the contents of documents and links each hash to the previous one, series by series in a fixed order.
    pub(super) fn freeze(&mut self, organization: OrganizationId, issued: &[(DocumentHead, &IssuedDocument)]) -> StoreResult<()> {
        let mut of_series: BTreeMap<(&EntityRef, DocumentKind), Vec<(&DocumentHead, &IssuedDocument)>> = BTreeMap::new();
        for (head, issued) in issued {
            of_series.entry((&head.entity_ref, head.kind)).or_default().push((head, *issued));
        }
        let mut seals: Vec<NewSeal<'_>> = Vec::with_capacity(issued.len());
        for ((entity_ref, kind), issued) in of_series {
            let kind = kind.to_text();
            let series = (Bound(organization.as_uuid()), entity_ref.as_str(), kind.as_str());
            let many: i64 = stored(issued.len())?;
            // Counting the documents locks the series, so that the returned chain head stays valid until it is
            // replaced.
            let chained_so_far: Option<(i64, Vec<u8>)> = with_conn!(self, "number_series", |conn| {
                diesel::update(number_series::table.find(series))
                    .set(number_series::chain_length.eq(number_series::chain_length + many))
                    .returning((number_series::chain_length, number_series::chain_head))
                    .get_result(conn)
                    .optional()
            })?;
            let Some((length, mut previous)) = chained_so_far else {
                return self.refuse(format!("number_series {entity_ref}/{kind}: not there"));
            };
            for ((head, issued), position) in issued.into_iter().zip(length - many + 1..) {
                let content = to_json(&FrozenRef::new(head, issued))?;
                let hash = chained(&previous, &content).to_vec();
                let previous_hash = std::mem::replace(&mut previous, hash.clone());
                seals.push(NewSeal {
                    document_id: Bound(head.document_ref.as_uuid()),
                    customer_id: Bound(head.customer_id.as_uuid()),
                    organization_id: series.0,
                    entity_ref: entity_ref.as_str(),
                    kind: kind.clone(),
                    chain_position: position,
                    previous_hash,
                    content_hash: hash,
                    content,
                    issued_at: Bound(issued.issued_at),
                });
            }
            with_conn!(self, "number_series", |conn| diesel::update(number_series::table.find(series))
                .set(number_series::chain_head.eq(&previous))
                .execute(conn))?;
        }
        self.insert_seals(seals)
    }

    fn insert_seals(&mut self, seals: Vec<NewSeal<'_>>) -> StoreResult<()> {
        let many = seals.len();
        let inserted: QueryResult<usize> = match &mut self.connection {
            Connection::Sqlite(connection) => {
                let insert = |seal| diesel::insert_into(issued_documents::table).values(seal).execute(*connection);
                seals.into_iter().map(insert).sum()
            }
            Connection::Postgres(connection) => {
                InsertRows::new("issued_documents", NewSeal::columns(&seals)).insert(connection, self.is_spread)
            }
        };
        if inserted.map_err(|error| self.failed("issued_documents", &error))? < many {
            return self.refuse("issued_documents: there already".to_owned());
        }
        Ok(())
    }
}

/// Returns the hash of a document's content and everything issued before it: `sha256(previous hash ‖ content)`.
pub(crate) fn chained(previous: &[u8], content: &JsonText) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(content.0.as_bytes());
    hash.finalize().into()
}
