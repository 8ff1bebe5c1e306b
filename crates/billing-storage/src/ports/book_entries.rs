//! What decisions about a contract write: [`issue`](super::issue) freezes documents, [`corrections`](super::corrections)
//! and [`ledger`](super::ledger) do the rest.

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;
use billing_domain::document::lines::{LedgerLine, Sum, SumKey};
use billing_domain::document::{DefaultTax, DocumentHead, DraftContent, IssuedDocument};
use billing_domain::money::Percentage;
use billing_domain::ports::{BookEntries, FamilySum, StoreError, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};
use diesel::prelude::*;
use diesel::upsert::excluded;

use super::books::{NO_DISCOUNT, NO_PRODUCT};
use super::document_rows::{DRAFT, ISSUED, NO_DEFAULT_TAX};
use crate::schema::{documents, family_sums};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// A rate as part of a key: equal rates have one text.
fn rate_key(rate: Percentage) -> String {
    rate.as_decimal().normalize().to_string()
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
        self.redraw(organization, head)
    }

    fn put_ledger_lines(&mut self, key: DocumentKey, lines: &[LedgerLine]) -> StoreResult<()> {
        self.put_lines(key, lines)
    }

    fn issue_document(&mut self, key: DocumentKey, issued: &IssuedDocument) -> StoreResult<bool> {
        self.issue(key, issued)
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
