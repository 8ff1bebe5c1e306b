//! Contracts to create and edit. Fields that only responses contain are ignored.

use billing_application::contracts::ContractRequest;
use billing_domain::calendar::Date;
use billing_domain::contract::MAX_PRODUCTS;
use billing_domain::contract::amendment::{ContractEdit, EffectiveFrom, ProductPatch, TaxTreatmentPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem, RequestedProduct};
use billing_domain::labels::Where;
use billing_domain::metadata::Metadata;
use billing_domain::money::{Percentage, Price};
use billing_domain::party::legal::BuyerReference;
use billing_domain::party::{BankTransferDetails, CryptoDetails, NetTerms, OnlinePaymentDetails, PaymentDetails};
use billing_domain::patch::Patch;
use billing_domain::refs::{CustomerRef, EntityRef, PricingRef, ProductNo};
use billing_domain::tax::TaxBasis;
use billing_domain::text::{OneLine, Prose};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::contract_changes::{AmendmentOptions, check_day};
use super::contract_lines::NewLineItems;
use super::contract_view::{ContractJson, ContractProductJson};
use super::declare::{Field, Listed, NotClearable, Wire, body, fields, ignore_response_fields, object, wire};
use super::input::Fields;
use super::schemas::{Presence, Schemas};
use super::values::{CycleCount, VersionNumber};

const EFFECTIVE_FROM: &str = "effective_from";

body! {
    /// A contract to create. Fields that only responses contain are ignored; other unknown fields are rejected.
    ContractBody {
        @flat request: ContractRequest,
    }
    with {
        ignore_response_fields!(ContractJson);
    }
}

fields! {
    ContractRequest {
        /// Customer reference.
        customer_ref: CustomerRef,
        /// Purchase order number.
        po_number: Option<OneLine>,
        /// Keys and values of your own, such as identifiers in other systems.
        metadata: Metadata = Metadata::default(),
        /// Products of the contract.
        products: Vec<RequestedProduct> = Vec::new(),
        /// Whether the request may create up to 1,200 documents that are due immediately instead of 24. Default: false.
        allow_backdated: bool = false,
    }
}

object! {
    /// A product of a contract to create.
    RequestedProduct as "ContractProductBody" {
        /// Pricing reference.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// First day billed.
        billing_start_date: Date,
        /// Last day billed.
        billing_end_date: Date,
        /// Selected line items of the pricing. Default: all. An empty array selects none.
        line_items: Option<NewLineItems>,
        /// Minimum amount per period. Default: the pricing's.
        minimum_fee: Patch<Price>,
        /// Name on documents. Default: the pricing's name.
        name: Option<OneLine>,
        /// Condition on the labels of events. The product counts only events that meet it. With disjoint conditions, a contract
        /// can have a pricing several times on the same days.
        condition as "where": Option<Where>,
        /// Supplier entity. Default: the customer's, else the organization's.
        entity_ref: Option<EntityRef>,
        /// Billing interval. Default: monthly.
        billing_cycle: Option<BillingCycle>,
        /// Date of the first invoice. By default, the last invoice covers a whole period.
        issue_day: Option<Date>,
        /// Timing of payment relative to the billing period. Default: AFTER_USE. BEFORE_PERIOD is an alias of BEFORE_USE.
        payment_time: Option<PaymentTime>,
        /// Tax in percent. Default: the customer's.
        tax: Option<Percentage>,
        /// Discount in percent.
        discount: Option<Percentage>,
        /// Net terms. Default: the customer's, else the entity's, else DUE_UPON_RECEIPT.
        net_terms: Option<NetTerms>,
        /// Note printed on documents.
        note: Option<Prose>,
        @flat payment: PaymentDetails,
        @flat treatment: TaxBasis,
        /// Buyer reference printed on documents. Default: the customer's.
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
    /// A billing interval.
    struct CycleFields as "BillingCycleBody" {
        /// Time unit. Default: MONTHLY.
        unit: CycleUnit = CycleUnit::default(),
        /// Number of time units between invoices, a whole number. Default: 1.
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
    /// Changes to a contract. Omitted fields of the contract and of remaining products stay unchanged; null clears a
    /// field. `products` is the full new list. A contract from a response can be posted back: fields that only responses
    /// contain are ignored, other unknown fields are rejected.
    ContractEditBody {
        /// Day from which the change is in force, past or future; the first day of a period. Default: each product's next
        /// period.
        effective_from: Option<Date>,
        /// Whether the change is in force from the start of the current period. Excludes `effective_from`. Default:
        /// false.
        include_current_invoice: bool = false,
        /// Version that the edit is based on; only differences from that version are changed.
        version: Option<VersionNumber>,
        /// Can be repeated but not changed.
        customer_ref: NotClearable<CustomerRef>,
        /// Purchase order number.
        po_number: Patch<OneLine>,
        /// Keys and values of your own. A new value replaces all keys; null removes them.
        metadata: Patch<Metadata>,
        /// The full new list of products. Missing products end.
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
    /// Returns the requested changes and the time from which they are in force.
    pub fn edit(&self) -> ContractEdit {
        let since = match (self.effective_from, self.include_current_invoice) {
            (Some(day), _) => EffectiveFrom::Day(day),
            (None, true) => EffectiveFrom::CurrentPeriod,
            (None, false) => EffectiveFrom::NextPeriod,
        };
        ContractEdit {
            po_number: self.po_number.clone(),
            metadata: self.metadata.clone(),
            products: self.products.clone(),
            since,
            version: self.version,
        }
    }
}

/// The new list of products, if present.
pub struct ProductsEdit;

impl Field for ProductsEdit {
    type Form = Vec<ProductPatch>;
    type Value = Option<Vec<ProductPatch>>;
    const PRESENCE: Presence = Presence::Optional;
    const PRESENCE_IN_EDIT: Presence = Presence::Optional;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        match fields.patch(name, <Vec<ProductPatch> as Wire>::read)? {
            Patch::Keep => Some(None),
            Patch::Clear => {
                let detail = "must not be null: to end all products, cancel the contract; to keep all products, omit the field";
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
    /// A product in an edit: an existing product, identified by number or pricing, or a new product.
    ProductPatch as "ContractProductEditBody" {
        /// Number of the product, as in responses. If omitted, pricing and start date identify the product.
        product_no: NotClearable<ProductNo>,
        /// Pricing reference; identifies the product.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// First day billed; identifies the product if several have the pricing. Required for a new product.
        billing_start_date: NotClearable<Date>,
        /// Last day billed. Required for a new product. For a product that has begun, a new end that affects days before
        /// its next period requires `include_current_invoice`, or an `effective_from` no later than the first of these
        /// days.
        billing_end_date: NotClearable<Date>,
        /// Whether to update prices, minimum fee and, if all were selected, line items to the pricing's current terms.
        /// Default: false.
        reprice: bool = false,
        /// Selected line items of the pricing; null selects all.
        line_items: Patch<Vec<RequestedLineItem>>,
        /// Minimum amount per period; null selects the pricing's.
        minimum_fee: Patch<Price>,
        /// Name on documents; null selects the pricing's name.
        name: Patch<OneLine>,
        /// Condition on the labels of events. Together with pricing and start date, it identifies the product.
        condition as "where": Patch<Where>,
        /// Supplier entity.
        entity_ref: Patch<EntityRef>,
        /// Billing interval.
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
        /// Note printed on documents.
        note: Patch<Prose>,
        /// Bank account.
        bank_transfer as "billing_bank_transfer_details": Patch<BankTransferDetails>,
        /// Online payment.
        online as "billing_online_payment_details": Patch<OnlinePaymentDetails>,
        /// Crypto wallet.
        crypto as "billing_crypto_details": Patch<CryptoDetails>,
        @flat treatment: TaxTreatmentPatch,
        /// Buyer reference printed on documents.
        buyer_reference: Patch<BuyerReference>,
    }
    with {
        ignore_response_fields!(ContractProductJson);
    }
}

impl Listed for ProductPatch {
    const MAX: usize = MAX_PRODUCTS;
}
