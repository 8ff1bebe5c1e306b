//! What a contract's book is read from. Nothing here reads what documents say.

use std::collections::BTreeSet;

use billing_domain::document::BookDocument;
use billing_domain::document::lines::{Rates, Sum, SumKey};
use billing_domain::document::linking::{Place, Slot};
use billing_domain::ports::{Books, DocumentedLine, FamilySum, StoreResult};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::document_rows::{DocumentRow, USAGE};
use crate::on_document::DocumentsWithEvents;
use crate::one_of::{one_of_days, one_of_ids, one_of_numbers};
use crate::row::{Cell, Row};
use crate::schema::{document_parts, documents, family_sums};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// What a sum of tax has in the place of a product, because a key has no NULL.
pub(super) const NO_PRODUCT: i32 = -1;
/// What a sum of tax has in the place of a discount.
pub(super) const NO_DISCOUNT: &str = "";

#[derive(Queryable, Selectable)]
#[diesel(table_name = family_sums)]
struct SumRow {
    family_document_id: Cell<Uuid>,
    product_no: i32,
    discount_rate: String,
    tax_rate: String,
    base_minor: i64,
    amount_minor: i64,
}

impl SumRow {
    fn read(self) -> StoreResult<FamilySum> {
        let row = Row::new("family_sums", self.family_document_id.clone());
        let tax = row.leaf("tax_rate", &self.tax_rate)?;
        let key = if self.product_no == NO_PRODUCT {
            SumKey::Tax(tax)
        } else {
            let product_no = ProductNo(row.checked("product_no", u16::try_from(self.product_no))?);
            SumKey::Discount(product_no, Rates { discount: row.leaf("discount_rate", &self.discount_rate)?, tax })
        };
        Ok(FamilySum {
            family: DocumentRef::from_uuid(row.cell("family_document_id", self.family_document_id)?),
            key,
            sum: Sum { base: self.base_minor, amount: self.amount_minor },
        })
    }
}

impl Books for Transaction<'_> {
    fn book_documents(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
    ) -> StoreResult<Vec<BookDocument>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .filter(documents::purpose.ne(USAGE))
            .order((documents::created_at, documents::document_id))
            .select(DocumentRow::as_select())
            .load(conn))?;
        self.for_book(rows)
    }

    fn documents_in_places(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        places: &[Place],
    ) -> StoreResult<Vec<BookDocument>> {
        let products: BTreeSet<i32> = places.iter().map(|place| i32::from(place.product_no.0)).collect();
        let days: BTreeSet<NaiveDate> = places.iter().map(|place| place.period_start).collect();
        // As in the ledger: each product with each day, of which few stand where nobody asked.
        type Standing = (DocumentRow, i32, Cell<NaiveDate>, Option<String>);
        let rows: Vec<Standing> = with_conn!(self, "document_parts", |conn| document_parts::table
            .inner_join(
                documents::table.on(documents::document_id
                    .eq(document_parts::document_id)
                    .and(documents::customer_id.eq(document_parts::customer_id)))
            )
            .filter(document_parts::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(document_parts::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(one_of_numbers(document_parts::product_no, products))
            .filter(one_of_days(document_parts::period_start, days))
            // The bare column: an equality with a value hides the partial index from a prepared plan.
            .filter(document_parts::active)
            .filter(document_parts::slot.is_not_null())
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select((DocumentRow::as_select(), document_parts::product_no, document_parts::period_start, document_parts::slot))
            .load(conn))?;
        let wanted: BTreeSet<Place> = places.iter().copied().collect();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for (document, product_no, period_start, slot) in rows {
            let id = document.id()?;
            let row = Row::new("document_parts", id);
            let slot: Option<Slot> = row.optional_leaf("slot", slot.as_deref())?;
            let product_no = ProductNo(row.checked("product_no", u16::try_from(product_no))?);
            let period_start = row.cell("period_start", period_start)?;
            // A document of several products stands in several places.
            if slot.is_some_and(|slot| wanted.contains(&Place { product_no, period_start, slot })) && seen.insert(id) {
                found.push(document);
            }
        }
        let mut documents = self.for_book(found)?;
        documents.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
        Ok(documents)
    }

    fn book_documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        let rows: Vec<DocumentRow> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, refs.iter().map(|document| document.as_uuid())))
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select(DocumentRow::as_select())
            .load(conn))?;
        // Sorted here: for the order's sake SQLite would walk through all documents of the organization.
        let mut documents = self.for_book(rows)?;
        documents.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
        Ok(documents)
    }

    fn documented(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        contract_ref: ContractRef,
        periods: Option<&[(ProductNo, NaiveDate)]>,
    ) -> StoreResult<Vec<DocumentedLine>> {
        self.lines_in_force(organization, customer_id, contract_ref, periods)
    }

    fn family_sums(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        families: &[DocumentRef],
    ) -> StoreResult<Vec<FamilySum>> {
        let rows: Vec<SumRow> = with_conn!(self, "family_sums", |conn| family_sums::table
            .filter(family_sums::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_ids(family_sums::family_document_id, families.iter().map(|family| family.as_uuid())))
            .filter(family_sums::organization_id.eq(Bound(organization.as_uuid())))
            .select(SumRow::as_select())
            .load(conn))?;
        rows.into_iter().map(SumRow::read).collect()
    }

    fn documents_with_events(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<DocumentRef>> {
        let query = DocumentsWithEvents::new(organization, customer_id, refs);
        let ids: Vec<Cell<Uuid>> = with_conn!(self, "usage_events", |conn| query.load(conn))?;
        let row = Row::new("documents", "");
        ids.into_iter().map(|id| Ok(DocumentRef::from_uuid(row.cell("document_id", id)?))).collect()
    }
}
