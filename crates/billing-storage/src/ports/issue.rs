//! Freezes issued documents: the exact bytes of the content, and its position in the hash chain of its series.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument};
use billing_domain::ports::StoreResult;
use billing_domain::refs::{EntityRef, OrganizationId};
use diesel::prelude::*;
use sha2::{Digest as _, Sha256};

use super::stored;
use crate::json::FrozenRef;
use crate::row::to_json;
use crate::schema::number_series;
use crate::sql_types::{Bound, JsonText};
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{InsertRows, column};

/// The frozen content of a document, and its position in the chain of its series.
struct NewSeal<'a> {
    head: &'a DocumentHead,
    issued_at: Timestamp,
    position: i64,
    previous_hash: Vec<u8>,
    content_hash: Vec<u8>,
    content: JsonText,
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
                let issued_at = issued.issued_at;
                seals.push(NewSeal { head, issued_at, position, previous_hash, content_hash: hash, content });
            }
            with_conn!(self, "number_series", |conn| diesel::update(number_series::table.find(series))
                .set(number_series::chain_head.eq(&previous))
                .execute(conn))?;
        }
        self.insert_seals(organization, &seals)
    }

    fn insert_seals(&mut self, organization: OrganizationId, seals: &[NewSeal<'_>]) -> StoreResult<()> {
        let columns = vec![
            ("document_id", column(seals, |seal| seal.head.document_ref.as_uuid())),
            ("customer_id", column(seals, |seal| seal.head.customer_id.as_uuid())),
            ("organization_id", column(seals, |_| organization.as_uuid())),
            ("entity_ref", column(seals, |seal| seal.head.entity_ref.as_str())),
            ("kind", column(seals, |seal| seal.head.kind.to_text())),
            ("chain_position", column(seals, |seal| seal.position)),
            ("previous_hash", column(seals, |seal| seal.previous_hash.clone())),
            ("content_hash", column(seals, |seal| seal.content_hash.clone())),
            ("content", column(seals, |seal| seal.content.0.as_str())),
            ("issued_at", column(seals, |seal| seal.issued_at)),
        ];
        if self.insert_rows(InsertRows::new("issued_documents", columns))? < seals.len() {
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
