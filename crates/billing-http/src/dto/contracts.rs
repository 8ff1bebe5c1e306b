//! Contracts to make and to edit. A misspelt field would bill wrongly and is refused; what our own answers add is taken back
//! and ignored.

use billing_application::contracts::{AmendmentOptions, ContractRequest};
use billing_domain::catalog::MAX_LINE_ITEMS;
use billing_domain::contract::MAX_PRODUCTS;
use billing_domain::contract::amendment::{ContractEdit, ProductPatch, Since};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit, MAX_CYCLE};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::money::{Percentage, Price};
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef, PricingRef};
use billing_domain::violation::Violations;
use serde_json::Value;
use utoipa::ToSchema;

use super::contract_changes::{INCLUDE_CURRENT, include_current, options};
use super::contract_lines::{self, ContractLineItemBody};
use super::contract_view::{ANSWERED, ANSWERED_OF_PRODUCT};
use super::input::{self, Fields, Node};
use super::legal;
use super::party::{self, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    self, BuyerReferenceText, DateText, ExemptionCodeText, LineText, MAX_VERSION, NamedRef, NetTermsInput, PercentageInput,
    PriceInput, ProseText,
};
use super::words::{CycleUnitWord, PaymentTimeWord, TaxCategoryWord};

const EFFECTIVE_FROM: &str = "effective_from";
const CONTRACT_FIELDS: [&str; 4] = ["customer_ref", "po_number", "products", "allow_backdated"];
const EDIT_FIELDS: [&str; 8] =
    ["customer_ref", "po_number", "products", EFFECTIVE_FROM, INCLUDE_CURRENT, "version", "dry_run", "allow_backdated"];
const PRODUCT_FIELDS: [&str; 20] = [
    "product_pricing_ref",
    "billing_start_date",
    "billing_end_date",
    "line_items",
    "minimum_fee",
    "entity_ref",
    "billing_cycle",
    "issue_day",
    "payment_time",
    "tax",
    "discount",
    "net_terms",
    "note",
    "billing_bank_transfer_details",
    "billing_online_payment_details",
    "billing_crypto_details",
    "tax_category",
    "exemption_code",
    "exemption_reason",
    "buyer_reference",
];
const REPRICE: &str = "reprice";

/// A contract to make. Fields that an answer has beside these are ignored, others refused.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "customer_ref": "acme",
    "po_number": "PO-2026-17",
    "products": [{
        "product_pricing_ref": "api",
        "billing_start_date": "2026-01-01",
        "billing_end_date": "2026-12-31",
        "billing_cycle": {"unit": "MONTHLY", "cycle": 1},
        "payment_time": "AFTER_USE",
        "tax": 19,
        "discount": 10,
        "net_terms": 30,
        "note": "Thank you",
        "line_items": [
            {"line_item_id": "seats", "quantities": [{"from": "2026-01-01", "quantity": 10}]},
            {"line_item_id": "calls", "price": {"model": "PER_UNIT", "unit_price": "0.002"}}
        ]
    }]
}))]
pub(crate) struct ContractBody {
    /// Related customer.
    customer_ref: NamedRef,
    /// Purchase order number.
    po_number: Option<LineText>,
    /// Products of the contract.
    #[schema(max_items = 100)]
    products: Option<Vec<ContractProductBody>>,
    /// Whether it may make up to 1,200 documents due at once; otherwise 24.
    allow_backdated: Option<bool>,
}

/// One product of a contract to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
pub(crate) struct ContractProductBody {
    /// Related pricing.
    product_pricing_ref: NamedRef,
    /// First day billed.
    billing_start_date: DateText,
    /// Last day billed.
    billing_end_date: DateText,
    /// Selected line items of the pricing: all when left out, none when empty.
    #[schema(max_items = 200)]
    line_items: Option<Vec<ContractLineItemBody>>,
    /// The least a period costs; the pricing's when left out.
    minimum_fee: Option<PriceInput>,
    /// Supplier entity; the customer's, then the organization's when left out.
    entity_ref: Option<NamedRef>,
    /// Interval of invoices; monthly when left out.
    billing_cycle: Option<BillingCycleBody>,
    /// Date of the first invoice; when left out, the last invoice is not partial.
    issue_day: Option<DateText>,
    /// Timing of payment relative to the billing period; AFTER_USE when left out. BEFORE_PERIOD is read as BEFORE_USE.
    payment_time: Option<PaymentTimeWord>,
    /// Tax in percent; the customer's when left out.
    tax: Option<PercentageInput>,
    /// Discount in percent.
    discount: Option<PercentageInput>,
    /// Net terms; the customer's, then the entity's, then DUE_UPON_RECEIPT when left out.
    net_terms: Option<NetTermsInput>,
    /// Free text for the documents.
    note: Option<ProseText>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// How it is taxed at a rate of 0; the customer's, then the entity's category when left out. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// What the payer wants to find on its documents; the customer's when left out.
    buyer_reference: Option<BuyerReferenceText>,
}

/// Interval during which invoices are prepared.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BillingCycleBody {
    /// Time unit; MONTHLY when left out.
    unit: Option<CycleUnitWord>,
    /// Number of time units between invoices; 1 when left out.
    #[schema(schema_with = wire::cycle_input)]
    cycle: Option<u16>,
}

impl ContractBody {
    /// Reads a contract to make.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<ContractRequest, Violations> {
        input::read(body, |fields| {
            fields.only_beside(&CONTRACT_FIELDS, &ANSWERED);
            let customer_ref = fields.required("customer_ref", |node| node.parsed(CustomerRef::parse));
            let po_number = fields.optional("po_number", Node::line);
            let products = fields.optional("products", |node| node.list(MAX_PRODUCTS, product)).unwrap_or_default();
            let allow_backdated = fields.defaulted("allow_backdated", None, false, Node::boolean);
            Some(ContractRequest { customer_ref: customer_ref?, po_number, products, allow_backdated })
        })
    }
}

/// What of a contract is to change. Of the contract and of each product that stays, what is left out is kept and null
/// clears; `products` is the new full list. A contract as it was answered may be posted back: fields that it has beside these
/// are ignored, others refused.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "include_current_invoice": false,
    "products": [{"product_pricing_ref": "api", "discount": 15}]
}))]
pub(crate) struct ContractEditBody {
    /// The day the change holds from, past or future: the first day of a period. Each product's next period when left out.
    effective_from: Option<DateText>,
    /// Whether the change holds from the start of the current period. Not with `effective_from`.
    include_current_invoice: Option<bool>,
    /// The version that the edit starts from: it changes only what differs from that.
    #[schema(schema_with = wire::version_input)]
    version: Option<u32>,
    /// May be repeated, but not changed.
    #[schema(nullable = false)]
    customer_ref: Option<NamedRef>,
    /// Purchase order number.
    po_number: Option<LineText>,
    /// The new full list of products: those that are missing end.
    #[schema(max_items = 100, nullable = false)]
    products: Option<Vec<ContractProductEditBody>>,
    /// Whether to answer the documents concerned and store nothing.
    dry_run: Option<bool>,
    /// Whether it may make up to 1,200 documents due at once; otherwise 24.
    allow_backdated: Option<bool>,
}

/// A product of an edit: one of the contract's, by its pricing, or a new one.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
pub(crate) struct ContractProductEditBody {
    /// Related pricing; tells which product is meant.
    product_pricing_ref: NamedRef,
    /// First day billed; tells which product is meant where several have the pricing. Required of a new product.
    #[schema(nullable = false)]
    billing_start_date: Option<DateText>,
    /// Last day billed. Required of a new product.
    #[schema(nullable = false)]
    billing_end_date: Option<DateText>,
    /// Whether prices, minimum fee and, where all were taken, line items are as the pricing has them now.
    reprice: Option<bool>,
    /// Selected line items of the pricing; null for all.
    #[schema(max_items = 200)]
    line_items: Option<Vec<ContractLineItemBody>>,
    /// The least a period costs; null for the pricing's.
    minimum_fee: Option<PriceInput>,
    /// Supplier entity.
    entity_ref: Option<NamedRef>,
    /// Interval of invoices.
    billing_cycle: Option<BillingCycleBody>,
    /// Date of the first invoice.
    issue_day: Option<DateText>,
    /// Timing of payment relative to the billing period.
    payment_time: Option<PaymentTimeWord>,
    /// Tax in percent.
    tax: Option<PercentageInput>,
    /// Discount in percent.
    discount: Option<PercentageInput>,
    /// Net terms.
    net_terms: Option<NetTermsInput>,
    /// Free text for the documents.
    note: Option<ProseText>,
    /// Bank account.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet.
    billing_crypto_details: Option<CryptoJson>,
    /// How it is taxed at a rate of 0. E, AE, G and O need a reason.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// What the payer wants to find on its documents.
    buyer_reference: Option<BuyerReferenceText>,
}

impl ContractEditBody {
    /// Reads an edit, the customer it repeats, and how it is carried out.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<(Option<CustomerRef>, ContractEdit, AmendmentOptions), Violations> {
        input::read(body, |fields| {
            fields.only_beside(&EDIT_FIELDS, &ANSWERED);
            let customer_ref = fields.kept_or("customer_ref", |node| node.parsed(CustomerRef::parse));
            let po_number = fields.patch("po_number", Node::line);
            let products = match fields.patch("products", |node| node.list(MAX_PRODUCTS, product_patch)) {
                Patch::Keep => None,
                Patch::Clear => {
                    let detail = "must not be null: to end all products, cancel the contract; to keep them, leave it out";
                    fields.refuse("products", "required", detail)
                }
                Patch::Set(products) => Some(products),
            };
            let since = since(fields);
            let version = fields.optional("version", |node| {
                node.whole_or(1..=MAX_VERSION, "must be a whole number from 1, the version of the contract that is edited")
            });
            let options = options(fields);
            Some((customer_ref, ContractEdit { po_number, products, since, version }, options))
        })
    }
}

fn since(fields: Fields<'_>) -> Since {
    let day = fields.optional(EFFECTIVE_FROM, Node::date);
    match (day, include_current(fields, EFFECTIVE_FROM)) {
        (Some(day), _) => Since::Day(day),
        (None, true) => Since::CurrentPeriod,
        (None, false) => Since::NextPeriod,
    }
}

fn product_patch(node: Node<'_>) -> Option<ProductPatch> {
    node.object(|fields| {
        fields.only_beside(&[&PRODUCT_FIELDS[..], &[REPRICE]].concat(), &ANSWERED_OF_PRODUCT);
        let pricing_ref = fields.required("product_pricing_ref", |node| node.parsed(PricingRef::parse));
        let (bank_transfer, online, crypto) = party::payment_patch(fields);
        Some(ProductPatch {
            billing_start_date: fields.kept_or("billing_start_date", Node::date),
            billing_end_date: fields.kept_or("billing_end_date", Node::date),
            reprice: fields.defaulted(REPRICE, None, false, Node::boolean),
            line_items: fields.patch("line_items", |node| node.list(MAX_LINE_ITEMS, contract_lines::read)),
            minimum_fee: fields.patch("minimum_fee", |node| node.decimal(Price::parse)),
            entity_ref: fields.patch("entity_ref", |node| node.parsed(EntityRef::parse)),
            billing_cycle: fields.patch("billing_cycle", |node| node.object(billing_cycle)),
            issue_day: fields.patch("issue_day", Node::date),
            payment_time: fields.patch("payment_time", payment_time),
            tax: fields.patch("tax", |node| node.decimal(Percentage::parse)),
            discount: fields.patch("discount", |node| node.decimal(Percentage::parse)),
            net_terms: fields.patch("net_terms", party::net_terms),
            note: fields.patch("note", Node::prose),
            bank_transfer,
            online,
            crypto,
            treatment: legal::treatment_patch(fields),
            buyer_reference: fields.patch("buyer_reference", legal::buyer_reference),
            pricing_ref: pricing_ref?,
        })
    })
}

fn product(node: Node<'_>) -> Option<RequestedProduct> {
    node.object(|fields| {
        fields.only_beside(&PRODUCT_FIELDS, &ANSWERED_OF_PRODUCT);
        let pricing_ref = fields.required("product_pricing_ref", |node| node.parsed(PricingRef::parse));
        let billing_start_date = fields.required("billing_start_date", Node::date);
        let billing_end_date = fields.required("billing_end_date", Node::date);
        let line_items = fields.optional("line_items", |node| node.list(MAX_LINE_ITEMS, contract_lines::read_new));
        let minimum_fee = fields.patch("minimum_fee", |node| node.decimal(Price::parse));
        let entity_ref = fields.optional("entity_ref", |node| node.parsed(EntityRef::parse));
        let billing_cycle = fields.optional("billing_cycle", |node| node.object(billing_cycle));
        let issue_day = fields.optional("issue_day", Node::date);
        let payment_time = fields.optional("payment_time", payment_time);
        let tax = fields.optional("tax", |node| node.decimal(Percentage::parse));
        let discount = fields.optional("discount", |node| node.decimal(Percentage::parse));
        let net_terms = fields.optional("net_terms", party::net_terms);
        let note = fields.optional("note", Node::prose);
        let payment = party::payment(fields, None);
        let treatment = legal::treatment(fields, None, tax);
        let buyer_reference = fields.optional("buyer_reference", legal::buyer_reference);
        Some(RequestedProduct {
            pricing_ref: pricing_ref?,
            billing_start_date: billing_start_date?,
            billing_end_date: billing_end_date?,
            line_items,
            minimum_fee,
            entity_ref,
            billing_cycle,
            issue_day,
            payment_time,
            tax,
            discount,
            net_terms,
            note,
            payment,
            treatment,
            buyer_reference,
        })
    })
}

fn billing_cycle(fields: Fields<'_>) -> Option<BillingCycle> {
    fields.only(&["unit", "cycle"]);
    let unit = fields.defaulted("unit", None, CycleUnit::default(), Node::word::<CycleUnitWord>);
    let count = fields.defaulted("cycle", None, 1, |node| node.whole(1..=MAX_CYCLE));
    BillingCycle::new(unit, count)
}

/// A sample of the interface specification says `BEFORE_PERIOD` (billing rules 2).
fn payment_time(node: Node<'_>) -> Option<PaymentTime> {
    match node.as_text() {
        Some("BEFORE_PERIOD") => Some(PaymentTime::BeforeUse),
        Some(_) | None => node.word::<PaymentTimeWord>(),
    }
}
