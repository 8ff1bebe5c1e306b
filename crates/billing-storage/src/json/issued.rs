//! What an issued document says, to the byte: fixed key order, exact numbers as text, no float.
//! The bytes are hashed, so nothing here may change for documents already issued; a new shape gets a new
//! [`FORMAT`].

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::catalog::Tier;
use billing_domain::document::linking::Slot;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::{BilledProduct, DocumentContent, DocumentLine, LineUsage, Tax};
use billing_domain::document::{DocumentHead, DocumentKind, DocumentPart, IssuedDocument, Parties, Purpose};
use billing_domain::money::{Currency, Money, Percentage, Price};
use billing_domain::party::{NetTerms, NumberPrefix, PaymentDetails};
use billing_domain::rating::RatedTier;
use billing_domain::refs::{
    ContractRef, CustomerId, CustomerRef, DocumentRef, EntityRef, LineItemId, PricingRef, ProductNo, UsageProductRef,
};
use billing_domain::text::{Line, Prose};
use chrono::NaiveDate;
use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use super::party::PaymentMirror;
use super::pricing::TierMirror;
use super::terms::period;
use super::{list_of, option_of};
use crate::leaf;

/// The shape of the content.
const FORMAT: u32 = 1;

/// An issued document, to be written: what it is, and what it says.
#[derive(Serialize)]
pub(crate) struct FrozenRef<'a> {
    format: u32,
    #[serde(with = "HeadMirror")]
    document: &'a DocumentHead,
    #[serde(with = "IssuedMirror")]
    issued: &'a IssuedDocument,
}

impl<'a> FrozenRef<'a> {
    pub(crate) const fn new(document: &'a DocumentHead, issued: &'a IssuedDocument) -> Self {
        Self { format: FORMAT, document, issued }
    }
}

/// An issued document, read.
#[derive(Deserialize)]
pub(crate) struct Frozen {
    #[serde(with = "HeadMirror")]
    pub(crate) document: DocumentHead,
    #[serde(with = "IssuedMirror")]
    pub(crate) issued: IssuedDocument,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentHead")]
struct HeadMirror {
    #[serde(with = "leaf")]
    document_ref: DocumentRef,
    #[serde(with = "NumberMirror")]
    number: DocumentNumber,
    #[serde(with = "leaf")]
    kind: DocumentKind,
    #[serde(with = "PurposeMirror")]
    purpose: Purpose,
    #[serde(with = "leaf")]
    contract_ref: ContractRef,
    number_in_contract: u32,
    #[serde(with = "leaf")]
    customer_id: CustomerId,
    #[serde(with = "leaf")]
    entity_ref: EntityRef,
    #[serde(with = "leaf")]
    currency: Currency,
    #[serde(with = "period")]
    period: Period,
    is_partial_period: bool,
    #[serde(with = "parts")]
    parts: Vec<DocumentPart>,
    #[serde(with = "leaf")]
    net_terms: NetTerms,
    #[serde(with = "PaymentMirror")]
    payment: PaymentDetails,
    #[serde(with = "leaf::option")]
    parent: Option<DocumentRef>,
    #[serde(with = "leaf::option")]
    replaces: Option<DocumentRef>,
    #[serde(with = "leaf")]
    created_at: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentNumber")]
struct NumberMirror {
    #[serde(with = "leaf")]
    prefix: NumberPrefix,
    #[serde(with = "leaf")]
    kind: DocumentKind,
    sequence: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Purpose", rename_all = "SCREAMING_SNAKE_CASE")]
enum PurposeMirror {
    Regular(#[serde(with = "leaf")] Slot),
    Usage,
    Adjustment,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ProductNo")]
struct ProductNoMirror(u16);

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentPart")]
struct PartMirror {
    #[serde(with = "ProductNoMirror")]
    product_no: ProductNo,
    #[serde(with = "leaf")]
    tax_rate: Percentage,
    #[serde(with = "leaf")]
    discount_rate: Percentage,
}
list_of!(parts: DocumentPart = "PartMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "IssuedDocument")]
struct IssuedMirror {
    #[serde(with = "leaf")]
    issued_at: Timestamp,
    #[serde(with = "leaf")]
    issue_date: NaiveDate,
    #[serde(with = "leaf")]
    due_date: NaiveDate,
    #[serde(with = "PartiesMirror")]
    parties: Parties,
    #[serde(with = "leaf::option")]
    po_number: Option<Line>,
    #[serde(with = "leaf::option")]
    note: Option<Prose>,
    #[serde(with = "ContentMirror")]
    content: DocumentContent,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Parties")]
struct PartiesMirror {
    #[serde(with = "leaf")]
    customer_ref: CustomerRef,
    #[serde(with = "leaf")]
    customer_name: Line,
    #[serde(with = "leaf::option")]
    customer_legal_name: Option<Line>,
    #[serde(with = "leaf")]
    entity_ref: EntityRef,
    #[serde(with = "leaf")]
    entity_name: Line,
    #[serde(with = "leaf::option")]
    entity_legal_name: Option<Line>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentContent")]
struct ContentMirror {
    #[serde(with = "products")]
    products: Vec<BilledProduct>,
    #[serde(with = "taxes")]
    taxes: Vec<Tax>,
    #[serde(with = "leaf")]
    sub_total: Money,
    #[serde(with = "leaf")]
    total_discount: Money,
    #[serde(with = "leaf")]
    total_tax: Money,
    #[serde(with = "leaf")]
    total: Money,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "BilledProduct")]
struct BilledProductMirror {
    #[serde(with = "ProductNoMirror")]
    product_no: ProductNo,
    #[serde(with = "leaf")]
    pricing_ref: PricingRef,
    #[serde(with = "leaf")]
    name: Line,
    #[serde(with = "leaf::option")]
    minimum_fee: Option<Price>,
    #[serde(with = "lines")]
    lines: Vec<DocumentLine>,
    #[serde(with = "leaf")]
    sub_total: Money,
    #[serde(with = "leaf")]
    discount_rate: Percentage,
    #[serde(with = "leaf")]
    discount: Money,
    #[serde(with = "leaf")]
    net: Money,
    #[serde(with = "leaf")]
    tax_rate: Percentage,
}
list_of!(products: BilledProduct = "BilledProductMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "DocumentLine")]
struct LineMirror {
    #[serde(with = "leaf::option")]
    line_item_id: Option<LineItemId>,
    #[serde(with = "leaf")]
    name: Line,
    #[serde(with = "period")]
    service_period: Period,
    #[serde(with = "line_usage")]
    usage: Option<LineUsage>,
    #[serde(with = "leaf")]
    amount: Money,
}
list_of!(lines: DocumentLine = "LineMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "LineUsage")]
struct LineUsageMirror {
    #[serde(with = "leaf")]
    usage_product_ref: UsageProductRef,
    #[serde(with = "leaf")]
    quantity: Decimal,
    #[serde(with = "leaf::option")]
    unit: Option<Line>,
    #[serde(with = "leaf::option")]
    unit_price: Option<Price>,
    #[serde(with = "rated_tiers")]
    tiers: Vec<RatedTier>,
}
option_of!(line_usage: LineUsage = "LineUsageMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "RatedTier")]
struct RatedTierMirror {
    #[serde(with = "TierMirror")]
    tier: Tier,
    #[serde(with = "leaf")]
    quantity: Decimal,
    #[serde(with = "leaf")]
    amount: Decimal,
}
list_of!(rated_tiers: RatedTier = "RatedTierMirror");

#[derive(Serialize, Deserialize)]
#[serde(remote = "Tax")]
struct TaxMirror {
    #[serde(with = "leaf")]
    rate: Percentage,
    #[serde(with = "leaf")]
    base: Money,
    #[serde(with = "leaf")]
    amount: Money,
}
list_of!(taxes: Tax = "TaxMirror");
