//! Contracts as they are shown. What is read can be posted back: an answer has every field of a request, with what was agreed
//! in it.

use billing_application::contracts::ContractView;
use billing_domain::calendar::Date;
use billing_domain::contract::schedule::BillingCycle;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{ContractProduct, SegmentTerms};

use super::contract_lines::ContractLineItemJson;
use super::declare::answer;
use super::enums::{ContractStateWord, CycleUnitWord, PaymentTimeWord, TaxCategoryWord};
use super::party::{BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::wire::{
    AssignedRef, BuyerReferenceText, DateText, ExactNumber, ExemptionCodeText, LineText, NamedRef, NetTermsValue, ProseText,
    TimestampText,
};

answer! {
    /// The reference of a contract that was made.
    ContractCreatedJson of view: ContractView {
        /// Contract reference.
        contract_ref: AssignedRef = view.contract.contract_ref,
    }
}

answer! {
    /// A contract, as its newest version has it. Posted to an edit as it is, it changes nothing.
    ContractJson of view: ContractView {
        let contract = &view.contract;
        let products = contract.products.iter().filter(|product| !product.is_removed());
        let products = products.filter_map(|product| ContractProductJson::of(product, view.today));
        /// Contract reference.
        contract_ref: AssignedRef = contract.contract_ref,
        /// Related customer.
        customer_ref: NamedRef = &contract.customer_ref,
        /// Purchase order number.
        po_number: Option<LineText> = contract.po_number.as_ref(),
        /// Products of the contract.
        products: Vec<ContractProductJson> = products,
        /// Its state today.
        state: ContractStateWord = view.state,
        /// Counts its versions from 1.
        #[schema(minimum = 1)]
        version: u32 = contract.version,
        /// Its number among the organization's contracts.
        #[schema(example = "C-1")]
        contract_number: String = contract.number_text(),
        /// The latest last day of its products.
        effective_end_date: Option<DateText> = contract.effective_end_date(),
        /// When it was cancelled.
        cancelled_at: Option<TimestampText> = contract.cancelled_at,
    }
}

answer! {
    /// One product of a contract.
    ContractProductJson of terms: ProductTerms {
        let (schedule, payment) = (&terms.schedule, &terms.payment);
        /// Its number in the contract, from 0: names it in edits.
        @omitted product_no: Option<u16> = None::<u16>,
        /// Related pricing.
        product_pricing_ref: NamedRef = &terms.pricing.pricing_ref,
        /// First day billed.
        billing_start_date: DateText = schedule.range().start(),
        /// Last day billed.
        billing_end_date: DateText = schedule.range().last_day(),
        /// Line items that are billed, as they were agreed.
        line_items: Vec<ContractLineItemJson> = &terms.line_items,
        /// The least a period costs, usage and fixed items together.
        minimum_fee: Option<ExactNumber> = terms.pricing.minimum_fee,
        /// The day these terms are in force from, where that is ahead.
        @omitted effective_from: Option<DateText> = None::<Date>,
        /// Supplier entity, where the product states one.
        entity_ref: Option<NamedRef> = terms.stated_entity.as_ref(),
        /// Interval of invoices.
        billing_cycle: BillingCycleJson = &schedule.cycle(),
        /// Date of the first invoice, where the product states one.
        issue_day: Option<DateText> = schedule.issue_day(),
        /// The day from which the boundaries of billing periods are counted; of a ONE_TIME product the day after its whole
        /// period.
        billing_anchor: DateText = schedule.anchor(),
        /// Timing of payment relative to the billing period.
        payment_time: PaymentTimeWord = terms.payment_time,
        /// Tax in percent, where the product states it.
        tax: Option<ExactNumber> = terms.tax,
        /// Discount in percent.
        discount: Option<ExactNumber> = terms.discount,
        /// Net terms, where the product states them.
        net_terms: Option<NetTermsValue> = terms.net_terms,
        /// Free text for the documents.
        note: Option<ProseText> = terms.note.as_ref(),
        /// Bank account, where the product states one.
        billing_bank_transfer_details: Option<BankTransferJson> = payment.bank_transfer.as_ref(),
        /// Online payment, where the product states it.
        billing_online_payment_details: Option<OnlinePaymentJson> = payment.online.as_ref(),
        /// Crypto wallet, where the product states one.
        billing_crypto_details: Option<CryptoJson> = payment.crypto.as_ref(),
        /// How it is taxed at a rate of 0, where the product states it.
        tax_category: Option<TaxCategoryWord> = terms.treatment.category,
        /// The reason, as a code.
        exemption_code: Option<ExemptionCodeText> = terms.treatment.exemption_code,
        /// The reason, in words.
        exemption_reason: Option<LineText> = terms.treatment.exemption_reason.as_ref(),
        /// What the payer wants to find on its documents, where the product states it.
        buyer_reference: Option<BuyerReferenceText> = terms.buyer_reference.as_ref().map(|reference| reference.as_str()),
        /// Today's terms, where they are others than these newest ones; without `effective_from` and `in_force`.
        #[schema(nullable = false, no_recursion)]
        @omitted in_force: Option<Box<ContractProductJson>> = None::<Self>,
    }
}

answer! {
    /// Interval during which invoices are prepared.
    BillingCycleJson of interval: BillingCycle {
        /// Time unit.
        unit: CycleUnitWord = interval.unit(),
        /// Number of time units between invoices.
        #[schema(minimum = 1, maximum = 1200)]
        cycle: u16 = interval.count(),
    }
}

impl ContractProductJson {
    /// The newest terms of a product, and today's where they are others.
    fn of(product: &ContractProduct, today: Date) -> Option<Self> {
        let newest = product.segments.iter().rev().find_map(|segment| match &segment.agreed {
            SegmentTerms::Billed(terms) => Some((segment, &**terms)),
            SegmentTerms::Ended(_) => None,
        });
        let (segment, terms) = newest?;
        // Terms that a cancel overtook never come into force.
        let comes = || product.period_after(segment.in_force_from).is_some_and(|period| std::ptr::eq(period.terms, terms));
        let ahead = segment.version > 1 && segment.in_force_from > today && comes();
        let effective_from = ahead.then(|| DateText::from(segment.in_force_from));
        let in_force = product.terms_on(today).filter(|todays| *todays != terms);
        let of = |terms| Self { product_no: Some(product.no.0), ..Self::from(terms) };
        let in_force = in_force.map(|todays| Box::new(of(todays)));
        Some(Self { effective_from, in_force, ..of(terms) })
    }
}
