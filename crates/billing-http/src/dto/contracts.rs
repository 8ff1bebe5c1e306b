//! Contracts. What is read can be posted back: an answer has every field of a request, with what was agreed in it.

use billing_application::contracts::{ContractRequest, ContractView};
use billing_domain::calendar::Date;
use billing_domain::catalog::MAX_LINE_ITEMS;
use billing_domain::contract::amendment::{ContractEdit, ProductPatch, Reach};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit, MAX_CYCLE};
use billing_domain::contract::terms::{PaymentTime, ProductTerms, RequestedProduct};
use billing_domain::contract::{Agreed, ContractProduct, MAX_PRODUCTS};
use billing_domain::money::Percentage;
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef, LineItemId, PricingRef};
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::party::{self, BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    self, AssignedRef, DateText, ExactNumber, LineText, NamedRef, NetTermsInput, NetTermsValue, PercentageInput, ProseText,
    TimestampText,
};
use super::words::{ContractStateWord, CycleUnitWord, PaymentTimeWord};

/// A contract to make.
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
        "note": "Thank you"
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
    line_items: Option<Vec<LineItemChoice>>,
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

/// A selected line item.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineItemChoice {
    /// Line item of the pricing.
    line_item_id: NamedRef,
}

impl ContractBody {
    /// Reads a contract to make.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<ContractRequest, Violations> {
        input::read(body, |fields| {
            let customer_ref = fields.required("customer_ref", |node| node.parsed(CustomerRef::parse));
            let po_number = fields.optional("po_number", Node::line);
            let products = fields.optional("products", |node| node.list(MAX_PRODUCTS, product)).unwrap_or_default();
            Some(ContractRequest { customer_ref: customer_ref?, po_number, products })
        })
    }
}

/// What of a contract is to change. Of the contract and of each product that stays, what is left out is kept and null
/// clears; `products` is the new full list.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "include_current_invoice": false,
    "products": [{"product_pricing_ref": "api", "discount": 15}]
}))]
pub(crate) struct ContractEditBody {
    /// Whether the change applies to the current invoice; otherwise it starts from the next.
    #[schema(default = false)]
    include_current_invoice: Option<bool>,
    /// May be repeated, but not changed.
    #[schema(nullable = false)]
    customer_ref: Option<NamedRef>,
    /// Purchase order number.
    po_number: Option<LineText>,
    /// The new full list of products: those that are missing end.
    #[schema(max_items = 100)]
    products: Option<Vec<ContractProductEditBody>>,
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
    /// Selected line items of the pricing; null for all.
    #[schema(max_items = 200)]
    line_items: Option<Vec<LineItemChoice>>,
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
}

impl ContractEditBody {
    /// Reads an edit, and the customer it repeats.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<(Option<CustomerRef>, ContractEdit), Violations> {
        input::read(body, |fields| {
            let customer_ref = fields.kept_or("customer_ref", |node| node.parsed(CustomerRef::parse));
            let po_number = fields.patch("po_number", Node::line);
            let products = match fields.patch("products", |node| node.list(MAX_PRODUCTS, product_patch)) {
                Patch::Keep => None,
                Patch::Clear => Some(Vec::new()),
                Patch::Set(products) => Some(products),
            };
            let reach = reach(fields);
            Some((customer_ref, ContractEdit { po_number, products, reach }))
        })
    }
}

/// How a contract is to end.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"include_current_invoice": false}))]
pub(crate) struct ContractCancelBody {
    /// Whether the contract ends today; otherwise its current period is billed to the end.
    #[schema(default = false)]
    include_current_invoice: Option<bool>,
}

impl ContractCancelBody {
    /// Reads a cancel; without a body it is by the default.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: Option<&Value>) -> Result<Reach, Violations> {
        input::read_optional(body, |fields| Some(reach(fields)))
    }
}

fn reach(fields: Fields<'_>) -> Reach {
    match fields.optional("include_current_invoice", Node::boolean) {
        Some(true) => Reach::CurrentInvoice,
        Some(false) | None => Reach::NextInvoice,
    }
}

fn product_patch(node: Node<'_>) -> Option<ProductPatch> {
    node.object(|fields| {
        let pricing_ref = fields.required("product_pricing_ref", |node| node.parsed(PricingRef::parse));
        let (bank_transfer, online, crypto) = party::payment_patch(fields);
        Some(ProductPatch {
            billing_start_date: fields.kept_or("billing_start_date", Node::date),
            billing_end_date: fields.kept_or("billing_end_date", Node::date),
            line_items: fields.patch("line_items", |node| node.list(MAX_LINE_ITEMS, line_item)),
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
            pricing_ref: pricing_ref?,
        })
    })
}

fn product(node: Node<'_>) -> Option<RequestedProduct> {
    node.object(|fields| {
        let pricing_ref = fields.required("product_pricing_ref", |node| node.parsed(PricingRef::parse));
        let billing_start_date = fields.required("billing_start_date", Node::date);
        let billing_end_date = fields.required("billing_end_date", Node::date);
        let line_items = fields.optional("line_items", |node| node.list(MAX_LINE_ITEMS, line_item));
        let entity_ref = fields.optional("entity_ref", |node| node.parsed(EntityRef::parse));
        let billing_cycle = fields.optional("billing_cycle", |node| node.object(billing_cycle));
        let issue_day = fields.optional("issue_day", Node::date);
        let payment_time = fields.optional("payment_time", payment_time);
        let tax = fields.optional("tax", |node| node.decimal(Percentage::parse));
        let discount = fields.optional("discount", |node| node.decimal(Percentage::parse));
        let net_terms = fields.optional("net_terms", party::net_terms);
        let note = fields.optional("note", Node::prose);
        let payment = party::payment(fields, None);
        Some(RequestedProduct {
            pricing_ref: pricing_ref?,
            billing_start_date: billing_start_date?,
            billing_end_date: billing_end_date?,
            line_items,
            entity_ref,
            billing_cycle,
            issue_day,
            payment_time,
            tax,
            discount,
            net_terms,
            note,
            payment,
        })
    })
}

fn line_item(node: Node<'_>) -> Option<LineItemId> {
    node.object(|fields| {
        fields.only(&["line_item_id"]);
        fields.required("line_item_id", |node| node.parsed(LineItemId::parse))
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

/// The reference of a contract that was made.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractCreatedJson {
    /// Contract reference.
    contract_ref: AssignedRef,
}

impl From<&ContractView> for ContractCreatedJson {
    fn from(view: &ContractView) -> Self {
        Self { contract_ref: AssignedRef::from(view.contract.contract_ref) }
    }
}

/// A contract, as its newest version has it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractJson {
    /// Contract reference.
    contract_ref: AssignedRef,
    /// Related customer.
    customer_ref: NamedRef,
    /// Purchase order number.
    po_number: Option<LineText>,
    /// Products of the contract.
    products: Vec<ContractProductJson>,
    /// Its state today.
    state: ContractStateWord,
    /// Counts its versions from 1.
    #[schema(minimum = 1)]
    version: u32,
    /// Its number among the organization's contracts.
    #[schema(example = "C-1")]
    contract_number: String,
    /// The latest last day of its products.
    effective_end_date: Option<DateText>,
    /// When it was cancelled.
    cancelled_at: Option<TimestampText>,
}

/// One product of a contract.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractProductJson {
    /// Related pricing.
    product_pricing_ref: NamedRef,
    /// First day billed.
    billing_start_date: DateText,
    /// Last day billed.
    billing_end_date: DateText,
    /// Line items that are billed.
    line_items: Vec<LineItemChoice>,
    /// The day these terms are in force from, where that is ahead.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    effective_from: Option<DateText>,
    /// Supplier entity, where the product states one.
    entity_ref: Option<NamedRef>,
    /// Interval of invoices.
    billing_cycle: BillingCycleJson,
    /// Date of the first invoice, where the product states one.
    issue_day: Option<DateText>,
    /// Timing of payment relative to the billing period.
    payment_time: PaymentTimeWord,
    /// Tax in percent, where the product states it.
    tax: Option<ExactNumber>,
    /// Discount in percent.
    discount: Option<ExactNumber>,
    /// Net terms, where the product states them.
    net_terms: Option<NetTermsValue>,
    /// Free text for the documents.
    note: Option<ProseText>,
    /// Bank account, where the product states one.
    billing_bank_transfer_details: Option<BankTransferJson>,
    /// Online payment, where the product states it.
    billing_online_payment_details: Option<OnlinePaymentJson>,
    /// Crypto wallet, where the product states one.
    billing_crypto_details: Option<CryptoJson>,
}

/// Interval during which invoices are prepared.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BillingCycleJson {
    /// Time unit.
    unit: CycleUnitWord,
    /// Number of time units between invoices.
    #[schema(minimum = 1, maximum = 1200)]
    cycle: u16,
}

impl From<&ContractView> for ContractJson {
    fn from(view: &ContractView) -> Self {
        let contract = &view.contract;
        let products = contract.products.iter().filter(|product| !product.is_removed());
        let products = products.filter_map(|product| ContractProductJson::of(product, view.today));
        Self {
            contract_ref: AssignedRef::from(contract.contract_ref),
            customer_ref: NamedRef::from(&contract.customer_ref),
            po_number: contract.po_number.as_ref().map(LineText::from),
            products: products.collect(),
            state: ContractStateWord::from(view.state),
            version: contract.version,
            contract_number: contract.number_text(),
            effective_end_date: contract.effective_end_date().map(DateText::from),
            cancelled_at: contract.cancelled_at.map(TimestampText::from),
        }
    }
}

impl ContractProductJson {
    /// The newest terms of a product.
    fn of(product: &ContractProduct, today: Date) -> Option<Self> {
        let newest = product.segments.iter().rev().find_map(|segment| match &segment.agreed {
            Agreed::Billed(terms) => Some((segment, &**terms)),
            Agreed::Ended(_) => None,
        });
        let (segment, terms) = newest?;
        // Terms that a cancel overtook never come into force.
        let comes = || product.period_after(segment.in_force_from).is_some_and(|period| std::ptr::eq(period.terms, terms));
        let ahead = segment.version > 1 && segment.in_force_from > today && comes();
        let effective_from = ahead.then(|| DateText::from(segment.in_force_from));
        Some(Self { effective_from, ..Self::from(terms) })
    }
}

impl From<&ProductTerms> for ContractProductJson {
    fn from(terms: &ProductTerms) -> Self {
        let (schedule, payment) = (&terms.schedule, &terms.payment);
        let cycle = schedule.cycle();
        let choice = |id| LineItemChoice { line_item_id: NamedRef::from(id) };
        Self {
            product_pricing_ref: NamedRef::from(&terms.pricing.pricing_ref),
            billing_start_date: DateText::from(schedule.range().start()),
            billing_end_date: DateText::from(schedule.range().last_day()),
            line_items: terms.line_items.iter().map(|item| choice(&item.id)).collect(),
            effective_from: None,
            entity_ref: terms.stated_entity.as_ref().map(NamedRef::from),
            billing_cycle: BillingCycleJson { unit: CycleUnitWord::from(cycle.unit()), cycle: cycle.count() },
            issue_day: schedule.issue_day().map(DateText::from),
            payment_time: PaymentTimeWord::from(terms.payment_time),
            tax: terms.tax.map(ExactNumber::from),
            discount: terms.discount.map(ExactNumber::from),
            net_terms: terms.net_terms.map(NetTermsValue::from),
            note: terms.note.as_ref().map(ProseText::from),
            billing_bank_transfer_details: payment.bank_transfer.as_ref().map(BankTransferJson::from),
            billing_online_payment_details: payment.online.as_ref().map(OnlinePaymentJson::from),
            billing_crypto_details: payment.crypto.as_ref().map(CryptoJson::from),
        }
    }
}
