//! Contracts to make and to edit. What our own answers add is taken back and ignored.

use billing_application::contracts::{AmendmentOptions, ContractRequest};
use billing_domain::calendar::Date;
use billing_domain::contract::MAX_PRODUCTS;
use billing_domain::contract::amendment::{ContractEdit, EffectiveFrom, ProductPatch, TaxTreatmentPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem, RequestedProduct};
use billing_domain::money::{Percentage, Price};
use billing_domain::party::legal::BuyerReference;
use billing_domain::party::{BankTransferDetails, CryptoDetails, NetTerms, OnlinePaymentDetails, PaymentDetails};
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef, PricingRef, ProductNo};
use billing_domain::tax::TaxBasis;
use billing_domain::text::{OneLine, Prose};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::contract_changes::check_day;
use super::contract_lines::NewLineItems;
use super::contract_view::{ContractJson, ContractProductJson};
use super::declare::{Field, Listed, NotClearable, Wire, body, fields, ignore_response_fields, object, wire};
use super::input::Fields;
use super::schemas::{Presence, Schemas};
use super::values::{CycleCount, VersionNumber};

const EFFECTIVE_FROM: &str = "effective_from";

body! {
    /// A contract to make. Fields that an answer has beside these are ignored, others refused.
    ContractBody {
        @flat request: ContractRequest,
    }
    with {
        ignore_response_fields!(ContractJson);
    }
}

fields! {
    ContractRequest {
        /// Related customer.
        customer_ref: CustomerRef,
        /// Purchase order number.
        po_number: Option<OneLine>,
        /// Products of the contract.
        products: Vec<RequestedProduct> = Vec::new(),
        /// Whether it may make up to 1,200 documents due at once; otherwise 24.
        allow_backdated: bool = false,
    }
}

object! {
    /// One product of a contract to make.
    RequestedProduct as "ContractProductBody" {
        /// Related pricing.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// First day billed.
        billing_start_date: Date,
        /// Last day billed.
        billing_end_date: Date,
        /// Selected line items of the pricing: all when left out, none when empty.
        line_items: Option<NewLineItems>,
        /// The least a period costs; the pricing's when left out.
        minimum_fee: Patch<Price>,
        /// Supplier entity; the customer's, then the organization's when left out.
        entity_ref: Option<EntityRef>,
        /// Interval of invoices; monthly when left out.
        billing_cycle: Option<BillingCycle>,
        /// Date of the first invoice; when left out, the last invoice is not partial.
        issue_day: Option<Date>,
        /// Timing of payment relative to the billing period; AFTER_USE when left out. BEFORE_PERIOD is read as BEFORE_USE.
        payment_time: Option<PaymentTime>,
        /// Tax in percent; the customer's when left out.
        tax: Option<Percentage>,
        /// Discount in percent.
        discount: Option<Percentage>,
        /// Net terms; the customer's, then the entity's, then DUE_UPON_RECEIPT when left out.
        net_terms: Option<NetTerms>,
        /// Free text for the documents.
        note: Option<Prose>,
        @flat payment: PaymentDetails,
        @flat treatment: TaxBasis,
        /// What the payer wants to find on its documents; the customer's when left out.
        buyer_reference: Option<BuyerReference>,
    }
    with {
        ignore_response_fields!(ContractProductJson);
    }
}

impl Listed for RequestedProduct {
    const MAX: usize = MAX_PRODUCTS;
}

object! {
    /// Interval during which invoices are prepared.
    struct CycleFields as "BillingCycleBody" {
        /// Time unit; MONTHLY when left out.
        unit: CycleUnit = CycleUnit::default(),
        /// Number of time units between invoices: a whole number, 1 when left out.
        cycle: CycleCount = 1,
    }
}

wire! {
    BillingCycle: |node| {
        let CycleFields { unit, cycle } = <CycleFields as Wire>::read(node)?;
        BillingCycle::new(unit, cycle)
    }, |schemas| <CycleFields as Wire>::schema(schemas);
}

body! {
    /// What of a contract is to change. Of the contract and of each product that stays, what is left out is kept and null
    /// clears; `products` is the new full list. A contract as it was answered may be posted back: fields that it has beside these
    /// are ignored, others refused.
    ContractEditBody {
        /// The day the change holds from, past or future: the first day of a period. Each product's next period when left out.
        effective_from: Option<Date>,
        /// Whether the change holds from the start of the current period. Not with `effective_from`.
        include_current_invoice: bool = false,
        /// The version that the edit starts from: it changes only what differs from that.
        version: Option<VersionNumber>,
        /// May be repeated, but not changed.
        customer_ref: NotClearable<CustomerRef>,
        /// Purchase order number.
        po_number: Patch<OneLine>,
        /// The new full list of products: those that are missing end.
        products: ProductsEdit,
        @flat options: AmendmentOptions,
    }
    with {
        ignore_response_fields!(ContractJson);

        fn check(fields: Fields<'_>) {
            check_day(fields, EFFECTIVE_FROM);
        }
    }
}

impl ContractEditBody {
    /// What is to change, and from when.
    pub(crate) fn edit(&self) -> ContractEdit {
        let since = match (self.effective_from, self.include_current_invoice) {
            (Some(day), _) => EffectiveFrom::Day(day),
            (None, true) => EffectiveFrom::CurrentPeriod,
            (None, false) => EffectiveFrom::NextPeriod,
        };
        ContractEdit { po_number: self.po_number.clone(), products: self.products.clone(), since, version: self.version }
    }
}

/// The new list of products, where there is one.
pub(crate) struct ProductsEdit;

impl Field for ProductsEdit {
    type Value = Option<Vec<ProductPatch>>;
    const PRESENCE: Presence = Presence::Optional;
    const PRESENCE_IN_EDIT: Presence = Presence::Optional;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        match fields.patch(name, <Vec<ProductPatch> as Wire>::read)? {
            Patch::Keep => Some(None),
            Patch::Clear => {
                let detail = "must not be null: to end all products, cancel the contract; to keep them, leave it out";
                fields.refuse(name, "required", detail)
            }
            Patch::Set(products) => Some(Some(products)),
        }
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        Self::read(fields, name).map(Some)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <Vec<ProductPatch> as Wire>::schema(schemas)
    }
}

object! {
    /// A product of an edit: one of the contract's, by its number or its pricing, or a new one.
    ProductPatch as "ContractProductEditBody" {
        /// The product's number, as answers show it. When left out, pricing and start tell which product is meant.
        product_no: NotClearable<ProductNo>,
        /// Related pricing; tells which product is meant.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// First day billed; tells which product is meant where several have the pricing. Required of a new product.
        billing_start_date: NotClearable<Date>,
        /// Last day billed. Required of a new product. Of a product that has begun, an end that changes days before its next
        /// period needs `include_current_invoice` or an `effective_from` up to the first of these days.
        billing_end_date: NotClearable<Date>,
        /// Whether prices, minimum fee and, where all were taken, line items are as the pricing has them now.
        reprice: bool = false,
        /// Selected line items of the pricing; null for all.
        line_items: Patch<Vec<RequestedLineItem>>,
        /// The least a period costs; null for the pricing's.
        minimum_fee: Patch<Price>,
        /// Supplier entity.
        entity_ref: Patch<EntityRef>,
        /// Interval of invoices.
        billing_cycle: Patch<BillingCycle>,
        /// Date of the first invoice.
        issue_day: Patch<Date>,
        /// Timing of payment relative to the billing period.
        payment_time: Patch<PaymentTime>,
        /// Tax in percent.
        tax: Patch<Percentage>,
        /// Discount in percent.
        discount: Patch<Percentage>,
        /// Net terms.
        net_terms: Patch<NetTerms>,
        /// Free text for the documents.
        note: Patch<Prose>,
        /// Bank account.
        bank_transfer as "billing_bank_transfer_details": Patch<BankTransferDetails>,
        /// Online payment.
        online as "billing_online_payment_details": Patch<OnlinePaymentDetails>,
        /// Crypto wallet.
        crypto as "billing_crypto_details": Patch<CryptoDetails>,
        @flat treatment: TaxTreatmentPatch,
        /// What the payer wants to find on its documents.
        buyer_reference: Patch<BuyerReference>,
    }
    with {
        ignore_response_fields!(ContractProductJson);
    }
}

impl Listed for ProductPatch {
    const MAX: usize = MAX_PRODUCTS;
}
