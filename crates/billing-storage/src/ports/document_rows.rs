//! Rows of documents and their parts, and how they are read.

use std::collections::HashMap;

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{Document, DocumentHead, DocumentPart, Lifecycle, Purpose};
use billing_domain::ports::StoreResult;
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::stored;
use crate::json::{Frozen, StoredPayment};
use crate::leaf::Leaf as _;
use crate::row::{Cell, Row};
use crate::schema::{document_parts, documents};
use crate::sql_types::{Bound, JsonText};

pub(super) const DRAFT: &str = "DRAFT";
pub(super) const ISSUED: &str = "ISSUED";
pub(super) const VOID: &str = "VOID";
pub(super) const UNCOLLECTIBLE: &str = "UNCOLLECTIBLE";
pub(super) const REGULAR: &str = "REGULAR";
pub(super) const USAGE: &str = "USAGE";
pub(super) const ADJUSTMENT: &str = "ADJUSTMENT";

#[derive(Queryable, Selectable)]
#[diesel(table_name = documents)]
pub(super) struct DocumentRow {
    document_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    contract_id: Cell<Uuid>,
    entity_ref: String,
    kind: String,
    number_prefix: String,
    sequence: i64,
    purpose: String,
    slot: Option<String>,
    number_in_contract: i32,
    currency: String,
    period_start: Cell<NaiveDate>,
    period_end: Cell<NaiveDate>,
    is_partial_period: bool,
    net_terms: String,
    payment: JsonText,
    parent_document_id: Option<Cell<Uuid>>,
    replaces_document_id: Option<Cell<Uuid>>,
    created_at: Cell<Timestamp>,
    pub(super) lifecycle: String,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = document_parts)]
pub(super) struct PartRow {
    document_id: Cell<Uuid>,
    product_no: i32,
    tax_rate: Cell<Decimal>,
    discount_rate: Cell<Decimal>,
}

/// Parts by document.
pub(super) type Parts = HashMap<Uuid, Vec<DocumentPart>>;
/// What was issued, by document.
pub(super) type Issued = HashMap<Uuid, Frozen>;

impl PartRow {
    pub(super) fn read(self) -> StoreResult<(Uuid, DocumentPart)> {
        let row = Row::new("document_parts", format!("{}/{}", self.document_id, self.product_no));
        let rate = |column, cell| {
            let rate: Decimal = row.cell(column, cell)?;
            row.leaf(column, &rate.to_string())
        };
        let part = DocumentPart {
            product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
            tax_rate: rate("tax_rate", self.tax_rate)?,
            discount_rate: rate("discount_rate", self.discount_rate)?,
        };
        Ok((row.cell("document_id", self.document_id)?, part))
    }
}

impl DocumentRow {
    pub(super) fn id(&self) -> StoreResult<Uuid> {
        Row::new("documents", "").cell("document_id", self.document_id.clone())
    }

    pub(super) fn read(self, parts: &mut Parts, issued: &mut Issued) -> StoreResult<Document> {
        let id = self.id()?;
        let row = Row::new("documents", id);
        let kind = row.leaf("kind", &self.kind)?;
        let purpose = match (self.purpose.as_str(), self.slot.as_deref()) {
            (REGULAR, Some(slot)) => Purpose::Regular(row.leaf("slot", slot)?),
            (USAGE, None) => Purpose::Usage,
            (ADJUSTMENT, None) => Purpose::Adjustment,
            (other, slot) => return Err(row.corrupt("purpose", format_args!("{other:?} with slot {slot:?}"))),
        };
        let (frozen_head, issued) = issued.remove(&id).map(|frozen| (frozen.document, Box::new(frozen.issued))).unzip();
        let lifecycle = match (self.lifecycle.as_str(), issued) {
            (DRAFT, None) => Lifecycle::Draft,
            (VOID, issued) => Lifecycle::Void(issued),
            (ISSUED, Some(issued)) => Lifecycle::Issued(issued),
            (UNCOLLECTIBLE, Some(issued)) => Lifecycle::Uncollectible(issued),
            (other, issued) => {
                let content = if issued.is_some() { "with" } else { "without" };
                return Err(row.corrupt("lifecycle", format_args!("{other:?} {content} issued content")));
            }
        };
        let (start, end) = (row.cell("period_start", self.period_start)?, row.cell("period_end", self.period_end)?);
        let payment: StoredPayment = row.json("payment", &self.payment)?;
        let head = DocumentHead {
            document_ref: DocumentRef::from_uuid(id),
            number: DocumentNumber {
                prefix: row.leaf("number_prefix", &self.number_prefix)?,
                kind,
                sequence: row.checked("sequence", u64::try_from(self.sequence))?,
            },
            kind,
            purpose,
            contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
            number_in_contract: row.checked("number_in_contract", u32::try_from(self.number_in_contract))?,
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
            currency: row.leaf("currency", &self.currency)?,
            period: Period::new(start, end).ok_or_else(|| row.corrupt("period_end", "a period without a day"))?,
            is_partial_period: self.is_partial_period,
            parts: parts.remove(&id).unwrap_or_default(),
            net_terms: row.leaf("net_terms", &self.net_terms)?,
            payment: payment.0,
            parent: row.optional("parent_document_id", self.parent_document_id)?.map(DocumentRef::from_uuid),
            replaces: row.optional("replaces_document_id", self.replaces_document_id)?.map(DocumentRef::from_uuid),
            created_at: row.cell("created_at", self.created_at)?,
        };
        if frozen_head.is_some_and(|frozen| frozen != head) {
            return Err(row.corrupt("content", "it isn't what was issued"));
        }
        Ok(Document { head, lifecycle })
    }
}

#[derive(Insertable)]
#[diesel(table_name = document_parts, treat_none_as_default_value = false)]
pub(super) struct NewPart {
    document_id: Bound<Uuid>,
    customer_id: Bound<Uuid>,
    product_no: i32,
    position: i32,
    contract_id: Bound<Uuid>,
    period_start: Bound<NaiveDate>,
    slot: Option<String>,
    tax_rate: Bound<Decimal>,
    discount_rate: Bound<Decimal>,
    active: bool,
}

impl NewPart {
    pub(super) fn of(head: &DocumentHead) -> StoreResult<Vec<Self>> {
        let slot = slot_of(head.purpose);
        let of = |(position, part): (usize, &DocumentPart)| {
            Ok(Self {
                document_id: Bound(head.document_ref.as_uuid()),
                customer_id: Bound(head.customer_id.as_uuid()),
                product_no: i32::from(part.product_no.0),
                position: stored(position)?,
                contract_id: Bound(head.contract_ref.as_uuid()),
                period_start: Bound(head.period.start()),
                slot: slot.clone(),
                tax_rate: Bound(part.tax_rate.as_decimal()),
                discount_rate: Bound(part.discount_rate.as_decimal()),
                active: true,
            })
        };
        head.parts.iter().enumerate().map(of).collect()
    }
}

pub(super) fn slot_of(purpose: Purpose) -> Option<String> {
    match purpose {
        Purpose::Regular(slot) => Some(slot.show()),
        Purpose::Usage | Purpose::Adjustment => None,
    }
}
