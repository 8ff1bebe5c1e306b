//! Issuing a document: its lines, its content to the byte, and its place in its series' chain of hashes.

use billing_domain::document::totals::{BilledProduct, DocumentLine};
use billing_domain::document::{Document, DocumentHead, DocumentKind, IssuedDocument, Lifecycle};
use billing_domain::ports::{Documents as _, StoreResult};
use billing_domain::refs::{CustomerId, DocumentRef, LineItemId, OrganizationId, UsageProductRef};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::document_rows::{DRAFT, ISSUED};
use super::numbers::CHAIN_START;
use super::{MAX_BINDS, stored};
use crate::json::FrozenRef;
use crate::leaf::Leaf as _;
use crate::row::to_json;
use crate::schema::{document_lines, documents, issued_documents, number_series};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, with_conn};

#[derive(Insertable)]
#[diesel(table_name = document_lines, treat_none_as_default_value = false)]
struct NewLine<'a> {
    document_id: Bound<Uuid>,
    customer_id: Bound<Uuid>,
    ordinal: i32,
    contract_id: Bound<Uuid>,
    product_no: i32,
    line_item_id: Option<&'a str>,
    usage_product_ref: Option<&'a str>,
    service_period_start: Bound<NaiveDate>,
    service_period_end: Bound<NaiveDate>,
    quantity: Option<Bound<Decimal>>,
    amount_minor: i64,
}
const LINE_COLUMNS: usize = 11;

impl<'a> NewLine<'a> {
    fn of(head: &DocumentHead, ordinal: usize, product: &BilledProduct, line: &'a DocumentLine) -> StoreResult<Self> {
        let usage = line.usage.as_ref();
        Ok(Self {
            document_id: Bound(head.document_ref.as_uuid()),
            customer_id: Bound(head.customer_id.as_uuid()),
            ordinal: stored(ordinal)?,
            contract_id: Bound(head.contract_ref.as_uuid()),
            product_no: i32::from(product.product_no.0),
            line_item_id: line.line_item_id.as_ref().map(LineItemId::as_str),
            usage_product_ref: usage.map(|usage| &usage.usage_product_ref).map(UsageProductRef::as_str),
            service_period_start: Bound(line.service_period.start()),
            service_period_end: Bound(line.service_period.end()),
            quantity: usage.map(|usage| Bound(usage.quantity)),
            amount_minor: line.amount.minor(),
        })
    }
}

impl Transaction<'_> {
    pub(super) fn issue(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        document_ref: DocumentRef,
        issued: &IssuedDocument,
    ) -> StoreResult<bool> {
        // The state is tested in the statement that changes it; everything after stands on a document held.
        let total = issued.content.total.minor();
        let changed = with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(document_ref.as_uuid()), Bound(customer_id.as_uuid()))))
                .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
                .filter(documents::lifecycle.eq(DRAFT))
                .set((
                    documents::issue_date.eq(Bound(issued.issue_date)),
                    documents::due_date.eq(Bound(issued.due_date)),
                    documents::total_minor.eq(total),
                ))
                .execute(conn)
        })?;
        if changed == 0 {
            return Ok(false);
        }
        let Some(Document { head, lifecycle: Lifecycle::Draft }) = self.document(organization, document_ref)? else {
            return self.refuse(format!("documents {document_ref}: a draft that can't be read"));
        };
        with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(document_ref.as_uuid()), Bound(customer_id.as_uuid()))))
                .set(documents::lifecycle.eq(ISSUED))
                .execute(conn)
        })?;
        self.count_credit(&head, total)?;
        self.insert_lines(&head, issued)?;
        self.freeze(organization, &head, issued)?;
        Ok(true)
    }

    /// An issued credit counts towards what its invoice's payer owes.
    fn count_credit(&mut self, head: &DocumentHead, total: i64) -> StoreResult<()> {
        let (DocumentKind::Credit, Some(parent)) = (head.kind, head.parent) else { return Ok(()) };
        with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(parent.as_uuid()), Bound(head.customer_id.as_uuid()))))
                .set(documents::credits_minor.eq(documents::credits_minor + total))
                .execute(conn)
        })?;
        Ok(())
    }

    fn insert_lines(&mut self, head: &DocumentHead, issued: &IssuedDocument) -> StoreResult<()> {
        let lines = issued.content.products.iter().flat_map(|product| product.lines.iter().map(move |line| (product, line)));
        let rows: Vec<NewLine<'_>> = lines
            .enumerate()
            .map(|(ordinal, (product, line))| NewLine::of(head, ordinal, product, line))
            .collect::<StoreResult<_>>()?;
        let mut rows = rows.into_iter().peekable();
        while rows.peek().is_some() {
            let some: Vec<NewLine<'_>> = rows.by_ref().take(MAX_BINDS / LINE_COLUMNS).collect();
            with_conn!(self, "document_lines", |conn| diesel::insert_into(document_lines::table).values(some).execute(conn))?;
        }
        Ok(())
    }

    /// Writes the content and links its hash to the one before: `sha256(previous hash ‖ content)`.
    fn freeze(&mut self, organization: OrganizationId, head: &DocumentHead, issued: &IssuedDocument) -> StoreResult<()> {
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

fn chained(previous: &[u8], content: &JsonText) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(previous);
    hash.update(content.0.as_bytes());
    hash.finalize().into()
}
