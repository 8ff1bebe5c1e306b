//! Contracts as they are shown. What is read can be posted back: an answer has every field of a request, with what was agreed
//! in it.

use billing_application::contracts::ContractView;
use billing_domain::calendar::Date;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{Agreed, ContractProduct};
use serde::Serialize;
use utoipa::ToSchema;

use super::contract_lines::ContractLineItemJson;
use super::party::{BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    AssignedRef, BuyerReferenceText, DateText, ExactNumber, ExemptionCodeText, LineText, NamedRef, NetTermsValue, ProseText,
    TimestampText,
};
use super::words::{ContractStateWord, CycleUnitWord, PaymentTimeWord, TaxCategoryWord};

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

/// A contract, as its newest version has it. Posted to an edit as it is, it changes nothing.
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
    /// Line items that are billed, as they were agreed.
    line_items: Vec<ContractLineItemJson>,
    /// The least a period costs, usage and fixed items together.
    minimum_fee: Option<ExactNumber>,
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
    /// How it is taxed at a rate of 0, where the product states it.
    tax_category: Option<TaxCategoryWord>,
    /// The reason, as a code.
    exemption_code: Option<ExemptionCodeText>,
    /// The reason, in words.
    exemption_reason: Option<LineText>,
    /// What the payer wants to find on its documents, where the product states it.
    buyer_reference: Option<BuyerReferenceText>,
    /// Today's terms, where they are others than these newest ones; without `effective_from` and `in_force`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, no_recursion)]
    in_force: Option<Box<ContractProductJson>>,
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
    /// The newest terms of a product, and today's where they are others.
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
        let in_force = product.terms_on(today).filter(|todays| *todays != terms);
        Some(Self { effective_from, in_force: in_force.map(|todays| Box::new(Self::from(todays))), ..Self::from(terms) })
    }
}

impl From<&ProductTerms> for ContractProductJson {
    fn from(terms: &ProductTerms) -> Self {
        let (schedule, payment) = (&terms.schedule, &terms.payment);
        let cycle = schedule.cycle();
        Self {
            product_pricing_ref: NamedRef::from(&terms.pricing.pricing_ref),
            billing_start_date: DateText::from(schedule.range().start()),
            billing_end_date: DateText::from(schedule.range().last_day()),
            line_items: terms.line_items.iter().map(ContractLineItemJson::from).collect(),
            minimum_fee: terms.pricing.minimum_fee.map(ExactNumber::from),
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
            tax_category: terms.treatment.category.map(TaxCategoryWord::from),
            exemption_code: terms.treatment.exemption_code.map(ExemptionCodeText::from),
            exemption_reason: terms.treatment.exemption_reason.as_ref().map(LineText::from),
            buyer_reference: terms.buyer_reference.as_ref().map(|reference| BuyerReferenceText::from(reference.as_str())),
            in_force: None,
        }
    }
}
