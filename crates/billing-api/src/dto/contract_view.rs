//! Contracts in responses. A response has every field of a request with its agreed value, so it can be posted back.

use billing_application::contracts::ContractView;
use billing_domain::calendar::{Date, TimeZone, Timestamp};
use billing_domain::contract::schedule::BillingCycle;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{ContractProduct, SegmentTerms};

use super::contract_lines::ContractLineItemJson;
use super::declare::answer;
use super::enums::{ContractStateWord, CycleUnitWord, PaymentTimeWord, TaxCategoryWord};
use super::labels::WhereJson;
use super::metadata::MetadataJson;
use super::party::{BankTransferJson, CryptoJson, OnlinePaymentJson};
use super::values::{BuyerReferenceText, CurrencyCode, DateText, ExemptionCodeText, LineText, ProseText, TimestampText};
use super::warnings::WarningJson;
use super::wire::{AssignedRef, ExactNumber, NamedRef, NetTermsValue};

answer! {
    /// The reference of a created contract.
    ContractCreatedJson of view: ContractView {
        /// Contract reference.
        contract_ref: AssignedRef = view.contract.contract_ref,
        /// Possible mistakes in the request; omitted if there are none.
        @omitted warnings: Option<Vec<WarningJson>> = WarningJson::any_of(&view.warnings),
    }
}

answer! {
    /// The newest version of a contract. Posting it unchanged to an edit changes nothing.
    ContractJson of view: ContractView {
        let contract = &view.contract;
        let products = contract.products.iter().filter(|product| !product.is_removed());
        let products = products.filter_map(|product| ContractProductJson::of(product, view.today));
        let leaving = contract.products.iter().filter(|product| product.is_removed());
        let leaving = leaving.filter_map(|product| ContractProductJson::leaving(product, view.today)).collect::<Vec<_>>();
        /// Contract reference.
        contract_ref: AssignedRef = contract.contract_ref,
        /// Customer reference.
        customer_ref: NamedRef = &contract.customer_ref,
        /// Customer name.
        customer_name: Option<LineText> = view.customer_name.as_ref(),
        /// Purchase order number.
        po_number: Option<LineText> = contract.po_number.as_ref(),
        /// Products of the contract.
        products: Vec<ContractProductJson> = products,
        /// Today's terms of products that still bill today and that the newest version no longer lists.
        @omitted in_force: Option<Vec<ContractProductJson>> = Some(leaving).filter(|leaving| !leaving.is_empty()),
        /// State today.
        state: ContractStateWord = view.state,
        /// Version number, starting at 1.
        #[schema(minimum = 1)]
        version: u32 = contract.version,
        /// Number among the organization's contracts.
        #[schema(example = "C-1")]
        contract_number: String = contract.number_text(),
        /// Last day of the product that ends last.
        effective_end_date: Option<DateText> = contract.effective_end_date(),
        /// Time of the cancellation.
        cancelled_at: Option<TimestampText> = contract.cancelled_at,
        /// Keys and values of the caller.
        metadata: MetadataJson = &contract.metadata,
        /// Time of the last change, which created the newest version.
        updated_at: TimestampText = contract.updated_at,
        /// Possible mistakes in the change that this responds to; omitted if there are none.
        @omitted warnings: Option<Vec<WarningJson>> = WarningJson::any_of(&view.warnings),
    }
}

answer! {
    /// A product of a contract.
    ContractProductJson of terms: ProductTerms {
        let (schedule, payment) = (&terms.schedule, &terms.payment);
        /// Number in the contract, starting at 0; identifies the product in edits.
        @omitted product_no: Option<u16> = None::<u16>,
        /// Pricing reference.
        product_pricing_ref: NamedRef = &terms.pricing.pricing_ref,
        /// Name of the pricing, as agreed. Documents show it if the product has no `name`.
        product_name: LineText = &terms.pricing.name,
        /// Name on documents, if stated for the product.
        name: Option<LineText> = terms.name.as_ref(),
        /// Condition on the labels of events, if the product has one.
        @omitted condition as "where": Option<WhereJson> = terms.condition.as_ref(),
        /// Currency of all documents that bill the product.
        currency: CurrencyCode = terms.pricing.currency,
        /// First day billed.
        billing_start_date: DateText = schedule.range().start(),
        /// Last day billed.
        billing_end_date: DateText = schedule.range().last_day(),
        /// Billed line items with their agreed terms.
        line_items: Vec<ContractLineItemJson> = terms.line_items.iter(),
        /// Minimum amount per period, usage and fixed items together.
        minimum_fee: Option<ExactNumber> = terms.pricing.minimum_fee,
        /// Day from which these terms are in force, if it is in the future.
        @omitted effective_from: Option<DateText> = None::<Date>,
        /// Supplier entity, if stated for the product.
        entity_ref: Option<NamedRef> = terms.stated_entity.as_ref(),
        /// Billing interval.
        billing_cycle: BillingCycleJson = &schedule.cycle(),
        /// Date of the first invoice, if stated for the product.
        issue_day: Option<DateText> = schedule.issue_day(),
        /// Day from which billing period boundaries are counted; for a ONE_TIME product, the day after its single period. Null
        /// after the year 9999.
        billing_anchor: Option<DateText> = Some(schedule.anchor()).filter(|anchor| *anchor <= last_date()),
        /// Timing of payment relative to the billing period.
        payment_time: PaymentTimeWord = terms.payment_time,
        /// Tax in percent, if stated for the product.
        tax: Option<ExactNumber> = terms.tax,
        /// Discount in percent.
        discount: Option<ExactNumber> = terms.discount,
        /// Net terms, if stated for the product.
        net_terms: Option<NetTermsValue> = terms.net_terms,
        /// Note printed on documents.
        note: Option<ProseText> = terms.note.as_ref(),
        /// Bank account, if stated for the product.
        billing_bank_transfer_details: Option<BankTransferJson> = payment.bank_transfer.as_ref(),
        /// Online payment, if stated for the product.
        billing_online_payment_details: Option<OnlinePaymentJson> = payment.online.as_ref(),
        /// Crypto wallet, if stated for the product.
        billing_crypto_details: Option<CryptoJson> = payment.crypto.as_ref(),
        /// Tax category for a rate of 0, if stated for the product.
        tax_category: Option<TaxCategoryWord> = terms.treatment.category,
        /// Code of the exemption reason.
        exemption_code: Option<ExemptionCodeText> = terms.treatment.exemption_code,
        /// Text of the exemption reason.
        exemption_reason: Option<LineText> = terms.treatment.exemption_reason.as_ref(),
        /// Buyer reference printed on documents, if stated for the product.
        buyer_reference: Option<BuyerReferenceText> = terms.buyer_reference.as_ref().map(|reference| reference.as_str()),
        /// Today's terms, if they differ from the newest terms; without `effective_from` and `in_force`.
        #[schema(nullable = false, no_recursion)]
        @omitted in_force: Option<Box<ContractProductJson>> = None::<Self>,
    }
}

answer! {
    /// A billing interval.
    BillingCycleJson of interval: BillingCycle {
        /// Time unit.
        unit: CycleUnitWord = interval.unit(),
        /// Number of time units between invoices.
        #[schema(minimum = 1, maximum = 1200)]
        cycle: u16 = interval.count(),
    }
}

/// Returns the last date of four-digit years.
fn last_date() -> Date {
    TimeZone::UTC.service_date(Timestamp::MAX)
}

impl ContractProductJson {
    /// Returns the newest terms of a product, and today's terms if they differ.
    fn of(product: &ContractProduct, today: Date) -> Option<Self> {
        let newest = product.segments.iter().rev().find_map(|segment| match &segment.agreed {
            SegmentTerms::Billed(terms) => Some((segment, &**terms)),
            SegmentTerms::Ended(_) => None,
        });
        let (segment, terms) = newest?;
        // Terms superseded by a cancellation never come into force.
        let plan = product.plan();
        let comes = plan.iter().find(|clip| std::ptr::eq(clip.terms, terms)).map(|clip| clip.days.start());
        let effective_from = comes.filter(|from| segment.version > 1 && *from > today).map(DateText::from);
        let in_force = product.terms_on(today).filter(|todays| *todays != terms);
        let in_force = in_force.map(|todays| Box::new(Self::numbered(product, todays)));
        Some(Self { effective_from, in_force, ..Self::numbered(product, terms) })
    }

    /// Returns today's terms of a product that ends, or `None` if it bills no more.
    fn leaving(product: &ContractProduct, today: Date) -> Option<Self> {
        let plan = product.plan();
        let todays = plan.iter().find(|clip| clip.days.contains(today))?;
        Some(Self::numbered(product, todays.terms))
    }

    fn numbered(product: &ContractProduct, terms: &ProductTerms) -> Self {
        Self { product_no: Some(product.no.0), ..Self::from(terms) }
    }
}
