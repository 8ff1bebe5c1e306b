//! What decisions about a contract write: [`issue`](super::issue) freezes documents, [`ledger`](super::ledger) writes their
//! lines.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::{LedgerLine, Sum, SumKey};
use billing_domain::document::{DefaultTax, Document, DocumentHead, DocumentKind, DraftContent, IssuedDocument, Lifecycle};
use billing_domain::money::Percentage;
use billing_domain::ports::{BookEntries, Documents as _, FamilySum, StoreError, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, DocumentKey, DocumentRef, OrganizationId};
use billing_domain::text::OneLine;
use diesel::prelude::*;
use diesel::upsert::excluded;
use uuid::Uuid;

use super::books::{NO_DISCOUNT, NO_PRODUCT};
use super::document_rows::{DRAFT, ISSUED, NO_DEFAULT_TAX, VOID, slot_of};
use crate::json::StoredDraftRef;
use crate::row::{Cell, Row, to_json};
use crate::schema::{document_parts, documents, family_sums};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// A rate as part of a key: equal rates have one text.
fn rate_key(rate: Percentage) -> String {
    rate.as_decimal().normalize().to_string()
}

impl Transaction<'_> {
    /// Voids a document that is in one state, and leaves its places free; `false` when it isn't in it. A draft leaves what it
    /// said.
    fn put_out_of_force(
        &mut self,
        key: DocumentKey,
        from: &'static str,
        discarded: Option<&DraftContent>,
        at: Timestamp,
    ) -> StoreResult<bool> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let discarded = discarded.map(|content| to_json(&StoredDraftRef(content))).transpose()?;
        let voided = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(id))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .filter(documents::lifecycle.eq(from))
            .set((
                documents::lifecycle.eq(VOID),
                documents::voided_at.eq(Bound(at)),
                documents::updated_at.eq(Bound(at)),
                documents::discarded_content.eq(discarded),
                documents::amount_due_minor.eq(None::<i64>),
                documents::unapplied_minor.eq(None::<i64>),
            ))
            .execute(conn))?;
        if voided == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::update(document_parts::table)
            .filter(document_parts::document_id.eq(id.0))
            .filter(document_parts::customer_id.eq(id.1))
            .set(document_parts::active.eq(false))
            .execute(conn))?;
        Ok(true)
    }
}

impl BookEntries for Transaction<'_> {
    fn open_document(&mut self, organization: OrganizationId, head: &DocumentHead, family: DocumentRef) -> StoreResult<()> {
        if head.kind != head.number.kind {
            return self.refuse(format!("documents {}: its number is of another kind", head.document_ref));
        }
        self.hold_prefix(organization, head)?;
        self.insert_head(organization, head, family)?;
        self.insert_parts(head)
    }

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead) -> StoreResult<bool> {
        let key = (Bound(head.document_ref.as_uuid()), Bound(head.customer_id.as_uuid()));
        let changed = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(key))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .set((
                documents::slot.eq(slot_of(head.purpose)),
                documents::period_start.eq(Bound(head.period.start())),
                documents::period_end.eq(Bound(head.period.end())),
                documents::is_partial_period.eq(head.is_partial_period),
            ))
            .execute(conn))?;
        if changed == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::delete(document_parts::table)
            .filter(document_parts::document_id.eq(key.0))
            .filter(document_parts::customer_id.eq(key.1))
            .execute(conn))?;
        self.insert_parts(head)?;
        Ok(true)
    }

    fn put_ledger_lines(&mut self, key: DocumentKey, lines: &[LedgerLine]) -> StoreResult<()> {
        let contract_id: Option<Cell<Uuid>> = with_conn!(self, "documents", |conn| documents::table
            .find((Bound(key.document.as_uuid()), Bound(key.customer.as_uuid())))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .select(documents::contract_id)
            .first(conn)
            .optional())?;
        let Some(contract_id) = contract_id else {
            return self.refuse(format!("document_lines of {}: it is no draft", key.document));
        };
        let contract_id = Row::new("documents", key.document).cell("contract_id", contract_id)?;
        self.write_lines(key, ContractRef::from_uuid(contract_id), lines, false)
    }

    fn issue_document(&mut self, key: DocumentKey, issued: &IssuedDocument) -> StoreResult<bool> {
        // The state is tested in the statement that changes it; everything after stands on a document held.
        let total = issued.content.total.minor();
        let changed = with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()))))
                .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
                .filter(documents::lifecycle.eq(DRAFT))
                .set((
                    documents::issue_date.eq(Bound(issued.issue_date)),
                    documents::due_date.eq(Bound(issued.due_date)),
                    documents::total_minor.eq(total),
                    documents::updated_at.eq(Bound(issued.issued_at)),
                    documents::po_number.eq(issued.po_number.as_ref().map(OneLine::as_str)),
                ))
                .execute(conn)
        })?;
        if changed == 0 {
            return Ok(false);
        }
        let stored = self.documents_by_refs(key.organization, &[key.customer], &[key.document])?.pop();
        let Some(Document { head, lifecycle: Lifecycle::Draft, .. }) = stored else {
            return self.refuse(format!("documents {}: a draft that can't be read", key.document));
        };
        with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()))))
                .set((
                    documents::lifecycle.eq(ISSUED),
                    documents::amount_due_minor.eq((head.kind != DocumentKind::Credit).then_some(total)),
                    documents::unapplied_minor.eq((head.kind == DocumentKind::Credit).then_some(total)),
                ))
                .execute(conn)
        })?;
        self.write_lines(key, head.contract_ref, &issued.content.ledger_lines(), true)?;
        self.freeze(key.organization, &head, issued)?;
        Ok(true)
    }

    fn void_draft(&mut self, key: DocumentKey, content: &DraftContent, at: Timestamp) -> StoreResult<bool> {
        self.put_out_of_force(key, DRAFT, Some(content), at)
    }

    fn void_issued(&mut self, key: DocumentKey, at: Timestamp) -> StoreResult<bool> {
        self.put_out_of_force(key, ISSUED, None, at)
    }

    fn add_family_sums(&mut self, organization: OrganizationId, customer_id: CustomerId, added: &[FamilySum]) -> StoreResult<()> {
        // One row a key: PostgreSQL refuses to add to a row twice in one statement.
        let mut sums: BTreeMap<(DocumentRef, SumKey), Sum> = BTreeMap::new();
        for FamilySum { family, key, sum } in added {
            let total = sums.entry((*family, *key)).or_default();
            let added = total.base.checked_add(sum.base).zip(total.amount.checked_add(sum.amount));
            let Some((base, amount)) = added else {
                return Err(StoreError::Corrupt(format!("family_sums {family}: a sum is out of range")));
            };
            *total = Sum { base, amount };
        }
        for ((family, key), sum) in sums {
            let (product_no, discount_rate, tax_rate) = match key {
                SumKey::Discount(product_no, rates) => (i32::from(product_no.0), rate_key(rates.discount), rate_key(rates.tax)),
                SumKey::Tax(rate) => (NO_PRODUCT, NO_DISCOUNT.to_owned(), rate_key(rate)),
            };
            with_conn!(self, "family_sums", |conn| diesel::insert_into(family_sums::table)
                .values((
                    family_sums::customer_id.eq(Bound(customer_id.as_uuid())),
                    family_sums::family_document_id.eq(Bound(family.as_uuid())),
                    family_sums::organization_id.eq(Bound(organization.as_uuid())),
                    family_sums::product_no.eq(product_no),
                    family_sums::discount_rate.eq(discount_rate),
                    family_sums::tax_rate.eq(tax_rate),
                    family_sums::base_minor.eq(sum.base),
                    family_sums::amount_minor.eq(sum.amount),
                ))
                .on_conflict((
                    family_sums::customer_id,
                    family_sums::family_document_id,
                    family_sums::product_no,
                    family_sums::discount_rate,
                    family_sums::tax_rate,
                ))
                .do_update()
                .set((
                    family_sums::base_minor.eq(family_sums::base_minor + excluded(family_sums::base_minor)),
                    family_sums::amount_minor.eq(family_sums::amount_minor + excluded(family_sums::amount_minor)),
                ))
                .execute(conn))?;
        }
        Ok(())
    }

    fn keep_default_tax(&mut self, family: DocumentKey, default_tax: DefaultTax) -> StoreResult<()> {
        let kept = default_tax.0.map_or_else(|| NO_DEFAULT_TAX.to_owned(), |rate| rate.as_decimal().to_string());
        let changed = with_conn!(self, "documents", |conn| {
            diesel::update(documents::table.find((Bound(family.document.as_uuid()), Bound(family.customer.as_uuid()))))
                .filter(documents::organization_id.eq(Bound(family.organization.as_uuid())))
                .set(documents::default_tax.eq(kept))
                .execute(conn)
        })?;
        if changed == 0 {
            return self.refuse(format!("documents {}: not there to keep a default tax", family.document));
        }
        Ok(())
    }
}
