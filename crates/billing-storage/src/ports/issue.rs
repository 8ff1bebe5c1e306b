//! Freezing a document that is issued: its content to the byte, and its place in its series' chain of hashes.

use billing_domain::document::{DocumentHead, IssuedDocument};
use billing_domain::ports::StoreResult;
use billing_domain::refs::OrganizationId;
use diesel::prelude::*;
use sha2::{Digest as _, Sha256};

use super::numbers::CHAIN_START;
use crate::json::FrozenRef;
use crate::leaf::Leaf as _;
use crate::row::to_json;
use crate::schema::{issued_documents, number_series};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, with_conn};

impl Transaction<'_> {
    /// Writes the content and links its hash to the one before.
    pub(super) fn freeze(
        &mut self,
        organization: OrganizationId,
        head: &DocumentHead,
        issued: &IssuedDocument,
    ) -> StoreResult<()> {
        let content = to_json(&FrozenRef::new(head, issued))?;
        let kind = head.kind.show();
        let series = (Bound(organization.as_uuid()), head.entity_ref.as_str(), kind.as_str());
        // Counting the document holds the series, so that the head that comes back stays until it is replaced.
        let (position, previous): (i64, Vec<u8>) = with_conn!(self, "number_series", |conn| {
            diesel::insert_into(number_series::table)
                .values((
                    number_series::organization_id.eq(series.0),
                    number_series::entity_ref.eq(series.1),
                    number_series::kind.eq(series.2),
                    number_series::last.eq(0),
                    number_series::chain_length.eq(1),
                    number_series::chain_head.eq(CHAIN_START.as_slice()),
                ))
                .on_conflict((number_series::organization_id, number_series::entity_ref, number_series::kind))
                .do_update()
                .set(number_series::chain_length.eq(number_series::chain_length + 1))
                .returning((number_series::chain_length, number_series::chain_head))
                .get_result(conn)
        })?;
        let hash = chained(&previous, &content);
        with_conn!(self, "issued_documents", |conn| diesel::insert_into(issued_documents::table)
            .values((
                issued_documents::document_id.eq(Bound(head.document_ref.as_uuid())),
                issued_documents::customer_id.eq(Bound(head.customer_id.as_uuid())),
                issued_documents::organization_id.eq(series.0),
                issued_documents::entity_ref.eq(series.1),
                issued_documents::kind.eq(series.2),
                issued_documents::chain_position.eq(position),
                issued_documents::previous_hash.eq(&previous),
                issued_documents::content_hash.eq(hash.as_slice()),
                issued_documents::content.eq(&content),
                issued_documents::issued_at.eq(Bound(issued.issued_at)),
            ))
            .execute(conn))?;
        with_conn!(self, "number_series", |conn| diesel::update(number_series::table.find(series))
            .set(number_series::chain_head.eq(hash.as_slice()))
            .execute(conn))?;
        Ok(())
    }
}

/// The hash of what a document says and of everything issued before it: `sha256(previous hash ‖ content)`.
pub(super) fn chained(previous: &[u8], content: &JsonText) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(content.0.as_bytes());
    hash.finalize().into()
}
