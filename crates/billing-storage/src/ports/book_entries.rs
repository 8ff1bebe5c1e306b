//! Writes the decisions about a contract. [`issue`](super::issue) freezes documents, and [`ledger`](super::ledger)
//! writes their lines.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::{BaseAndAmount, LedgerLine, SumKey};
use billing_domain::document::{DocumentHead, DocumentKind, DraftContent, IssuedDocument};
use billing_domain::money::Percentage;
use billing_domain::ports::{BookWriter, FamilySum, StoreError, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};
use billing_domain::text::OneLine;
use chrono::NaiveDate;
use diesel::prelude::*;

use super::books::{NO_DISCOUNT, NO_PRODUCT, OF_CREDIT};
use super::document_rows::{DRAFT, ISSUED, VOID, slot_of};
use super::ledger::basis_text;
use crate::json::{StoredConvertedTaxRef, StoredDraftRef};
use crate::row::to_json;
use crate::schema::{document_parts, documents};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{Columns, InsertRows, UpdateRows, checked_column, column};

/// Returns a rate as part of a key: equal rates have equal texts.
pub(super) fn rate_key(rate: Percentage) -> String {
    rate.as_decimal().normalize().to_string()
}

impl Transaction<'_> {
    /// Voids a document in the given state and frees its billing slots. Returns `false` if the document has another
    /// state. A draft's content is saved.
    fn put_out_of_force(
        &mut self,
        key: DocumentKey,
        from: &'static str,
        discarded: Option<&DraftContent>,
        at: Timestamp,
        on: Option<NaiveDate>,
    ) -> StoreResult<bool> {
        let id = (Bound(key.document.as_uuid()), Bound(key.customer.as_uuid()));
        let discarded = discarded.map(|content| to_json(&StoredDraftRef(content))).transpose()?;
        let voided = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(id))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .filter(documents::lifecycle.eq(from))
            .set((
                documents::lifecycle.eq(VOID),
                documents::voided_at.eq(Bound(at)),
                documents::voided_on.eq(on.map(Bound)),
                documents::updated_at.eq(Bound(at)),
                documents::discarded_content.eq(discarded),
                documents::amount_due_minor.eq(None::<i64>),
                documents::unapplied_minor.eq(None::<i64>),
                documents::notification_count.eq(documents::notification_count + 1_i64),
            ))
            .execute(conn))?;
        if voided == 0 {
            return Ok(false);
        }
        self.require_some_contract("void_draft and void_issued")?;
        with_conn!(self, "document_parts", |conn| diesel::update(document_parts::table)
            .filter(document_parts::document_id.eq(id.0))
            .filter(document_parts::customer_id.eq(id.1))
            .set(document_parts::active.eq(false))
            .execute(conn))?;
        Ok(true)
    }

    /// Returns the heads of those documents that are drafts.
    fn heads_of_drafts(
        &mut self,
        organization: OrganizationId,
        keys: impl IntoIterator<Item = DocumentKey>,
    ) -> StoreResult<BTreeMap<DocumentRef, DocumentHead>> {
        let customers: BTreeMap<DocumentRef, CustomerId> = keys.into_iter().map(|key| (key.document, key.customer)).collect();
        let refs: Vec<DocumentRef> = customers.keys().copied().collect();
        let mut heads = BTreeMap::new();
        let of: Vec<CustomerId> = customers.values().copied().collect::<BTreeSet<_>>().into_iter().collect();
        for row in self.own_documents(organization, &of, &refs)? {
            if row.is_draft() {
                let head = row.head()?;
                heads.insert(head.document_ref, head);
            }
        }
        heads.retain(|document_ref, head| customers.get(document_ref) == Some(&head.customer_id));
        Ok(heads)
    }

    /// Marks drafts as issued and returns the number of updated drafts. The documents are locked from here on.
    fn mark_issued(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentHead, &IssuedDocument)],
        at: Timestamp,
    ) -> StoreResult<usize> {
        let amount_due = |(head, issued): &(DocumentHead, &IssuedDocument)| {
            (head.kind != DocumentKind::Credit).then_some(issued.content.total.minor())
        };
        let unapplied = |(head, issued): &(DocumentHead, &IssuedDocument)| {
            (head.kind == DocumentKind::Credit).then_some(issued.content.total.minor())
        };
        let converted = |(_, issued): &(DocumentHead, &IssuedDocument)| {
            issued.converted_tax().map(|tax| to_json(&StoredConvertedTaxRef(&tax))).transpose()
        };
        let keys = vec![
            ("document_id", column(drafts, |(head, _)| head.document_ref.as_uuid())),
            ("customer_id", column(drafts, |(head, _)| head.customer_id.as_uuid())),
            ("organization_id", column(drafts, |_| organization.as_uuid())),
        ];
        let changes = vec![
            ("converted_tax", checked_column(drafts, converted)?),
            ("issue_date", column(drafts, |(_, issued)| issued.issue_date)),
            ("due_date", column(drafts, |(_, issued)| issued.due_date)),
            ("total_minor", column(drafts, |(_, issued)| issued.content.total.minor())),
            ("updated_at", column(drafts, |_| at)),
            ("po_number", column(drafts, |(_, issued)| issued.po_number.as_ref().map(OneLine::as_str))),
            ("amount_due_minor", column(drafts, amount_due)),
            ("unapplied_minor", column(drafts, unapplied)),
        ];
        let update = UpdateRows::new("documents", keys, changes)
            .also("lifecycle = 'ISSUED', notification_count = documents.notification_count + 1")
            .only(" AND documents.lifecycle = 'DRAFT'");
        self.update_rows(update)
    }
}

impl BookWriter for Transaction<'_> {
    fn open_documents(
        &mut self,
        organization: OrganizationId,
        drafts: &[(&DocumentHead, DocumentRef)],
        at: Timestamp,
    ) -> StoreResult<()> {
        if let Some((head, _)) = drafts.iter().find(|(head, _)| head.kind != head.number.kind) {
            return self.refuse(format!("documents {}: its number is of another kind", head.document_ref));
        }
        let heads = || drafts.iter().map(|(head, _)| *head);
        heads().try_for_each(|head| self.require_contract(head.contract_ref, "open_documents"))?;
        self.check_prefixes(organization, heads())?;
        self.insert_heads(organization, drafts, at)?;
        self.insert_parts(heads())
    }

    fn update_draft(&mut self, organization: OrganizationId, head: &DocumentHead, at: Timestamp) -> StoreResult<bool> {
        self.require_contract(head.contract_ref, "update_draft")?;
        let key = (Bound(head.document_ref.as_uuid()), Bound(head.customer_id.as_uuid()));
        let changed = with_conn!(self, "documents", |conn| diesel::update(documents::table.find(key))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::lifecycle.eq(DRAFT))
            .set((
                documents::slot.eq(slot_of(head.purpose)),
                documents::period_start.eq(Bound(head.period.start())),
                documents::period_end.eq(Bound(head.period.end())),
                documents::is_partial_period.eq(head.is_partial_period),
                documents::updated_at.eq(Bound(at)),
            ))
            .execute(conn))?;
        if changed == 0 {
            return Ok(false);
        }
        with_conn!(self, "document_parts", |conn| diesel::delete(document_parts::table)
            .filter(document_parts::document_id.eq(key.0))
            .filter(document_parts::customer_id.eq(key.1))
            .execute(conn))?;
        self.insert_parts([head])?;
        Ok(true)
    }

    fn put_lines_of_drafts(&mut self, organization: OrganizationId, drafts: &[(DocumentKey, &[LedgerLine])]) -> StoreResult<()> {
        let heads = self.heads_of_drafts(organization, drafts.iter().map(|(key, _)| *key))?;
        let mut written = Vec::with_capacity(drafts.len());
        for (key, lines) in drafts {
            let Some(head) = heads.get(&key.document) else {
                return self.refuse(format!("document_lines of {}: it is no draft", key.document));
            };
            written.push((*key, head.contract_ref, lines.to_vec()));
        }
        self.write_lines(&written, false)
    }

    fn issue_documents(
        &mut self,
        organization: OrganizationId,
        drafts: &[(DocumentKey, &IssuedDocument)],
        at: Timestamp,
    ) -> StoreResult<bool> {
        let mut heads = self.heads_of_drafts(organization, drafts.iter().map(|(key, _)| *key))?;
        let mut frozen = Vec::with_capacity(drafts.len());
        for (key, issued) in drafts {
            let Some(head) = heads.remove(&key.document) else { return Ok(false) };
            frozen.push((head, *issued));
        }
        if self.mark_issued(organization, &frozen, at)? < frozen.len() {
            return Ok(false);
        }
        let lines =
            frozen.iter().map(|(head, issued)| (head.key(organization), head.contract_ref, issued.content.ledger_lines()));
        self.write_lines(&lines.collect::<Vec<_>>(), true)?;
        self.freeze(organization, &frozen)?;
        Ok(true)
    }

    fn void_draft(&mut self, key: DocumentKey, content: &DraftContent, at: Timestamp) -> StoreResult<bool> {
        self.put_out_of_force(key, DRAFT, Some(content), at, None)
    }

    fn void_issued(&mut self, key: DocumentKey, at: Timestamp, on: NaiveDate) -> StoreResult<bool> {
        self.put_out_of_force(key, ISSUED, None, at, Some(on))
    }

    fn add_sums_of_families(&mut self, organization: OrganizationId, added: &[(CustomerId, FamilySum)]) -> StoreResult<()> {
        // Each key has one row, because PostgreSQL rejects two updates of a row in one statement.
        let mut sums: BTreeMap<(CustomerId, DocumentRef, SumKey), BaseAndAmount> = BTreeMap::new();
        for (customer_id, FamilySum { family, key, sum }) in added {
            let total = sums.entry((*customer_id, *family, key.clone())).or_default();
            let added = total.base.checked_add(sum.base).zip(total.amount.checked_add(sum.amount));
            let Some((base, amount)) = added else {
                return Err(StoreError::Corrupt(format!("family_sums {family}: a sum is out of range")));
            };
            *total = BaseAndAmount { base, amount };
        }
        if sums.is_empty() {
            return Ok(());
        }
        self.require_some_contract("add_sums_of_families")?;
        let columns = columns_of(organization, &sums.into_iter().collect::<Vec<_>>())?;
        let insert = InsertRows::new("family_sums", columns).on_conflict(
            " ON CONFLICT (customer_id, family_document_id, product_no, discount_rate, tax_rate, tax_basis) DO UPDATE SET \
             base_minor = family_sums.base_minor + excluded.base_minor, \
             amount_minor = family_sums.amount_minor + excluded.amount_minor",
        );
        self.insert_rows(insert).map(drop)
    }
}

type NewSum = ((CustomerId, DocumentRef, SumKey), BaseAndAmount);

fn columns_of(organization: OrganizationId, sums: &[NewSum]) -> StoreResult<Columns> {
    let product_no = |((_, _, key), _): &NewSum| match key {
        SumKey::Discount(product_no, _) => i32::from(product_no.0),
        SumKey::Tax(_) => NO_PRODUCT,
        SumKey::Prepaid(..) => OF_CREDIT,
    };
    let discount_rate = |((_, _, key), _): &NewSum| match key {
        SumKey::Discount(_, rates) => rate_key(rates.discount),
        SumKey::Tax(_) => NO_DISCOUNT.to_owned(),
        SumKey::Prepaid(_, grant_ref) => grant_ref.to_string(),
    };
    let tax = |((_, _, key), _): &'_ NewSum| match key {
        SumKey::Discount(_, rates) => rates.tax.clone(),
        SumKey::Tax(tax) | SumKey::Prepaid(tax, _) => tax.clone(),
    };
    Ok(vec![
        ("customer_id", column(sums, |((customer_id, ..), _)| customer_id.as_uuid())),
        ("family_document_id", column(sums, |((_, family, _), _)| family.as_uuid())),
        ("organization_id", column(sums, |_| organization.as_uuid())),
        ("product_no", column(sums, product_no)),
        ("discount_rate", column(sums, discount_rate)),
        ("tax_rate", column(sums, |sum| rate_key(tax(sum).rate))),
        ("tax_basis", checked_column(sums, |sum| basis_text(&tax(sum).basis))?),
        ("base_minor", column(sums, |(_, sum)| sum.base)),
        ("amount_minor", column(sums, |(_, sum)| sum.amount)),
    ])
}
