//! Charges: manual one-off amounts with a date, including manual credits (billing rules 5).
//!
//! The ledger decides how a charge affects the documents of its period.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::contract::ProductPeriod;
use crate::decimal::WideDecimal;
use crate::document::lines::BillWith;
use crate::money::{AmountOutOfRange, Currency, Money, Price, SignedPrice};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{ChargeRef, ContractRef, CustomerId, LineItemId, PricingRef, ProductNo};
use crate::text::{OneLine, Prose};

/// A charge at its latest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The reference that callers use.
    pub charge_ref: ChargeRef,
    /// The customer who pays.
    pub customer_id: CustomerId,
    /// The contract of the charge.
    pub contract_ref: ContractRef,
    /// The product whose documents bill the charge.
    pub product_no: ProductNo,
    /// The date of the charge. The charge belongs to the product's period that contains the date.
    pub date: NaiveDate,
    /// The name on documents.
    pub name: OneLine,
    /// The quantity.
    pub quantity: Quantity,
    /// The price of one unit. A negative price credits the customer.
    pub unit_price: SignedPrice,
    /// The name of the unit.
    pub unit: Option<OneLine>,
    /// The currency of the product in the period of the charge.
    pub currency: Currency,
    /// Whether the document of the period's fixed items or the document of its usage bills the charge.
    pub bill_with: BillWith,
    /// Whether the product's discount applies.
    pub discountable: bool,
    /// Whether the charge is for a good instead of a service.
    pub goods: bool,
    /// A note on the charge, not shown on documents.
    pub note: Option<Prose>,
    /// The reason for the charge.
    pub reason: Option<Prose>,
    /// The time at which the charge was first stored.
    pub recorded_at: Timestamp,
    /// The revision number, starting at 1.
    pub revision: u32,
    /// The time of this revision.
    pub revised_at: Timestamp,
    /// The actor of this revision.
    pub revised_by: Actor,
    /// Whether this revision deleted the charge.
    pub deleted: bool,
}

impl Charge {
    /// Returns `round(quantity × unit_price)`, also for a deleted charge.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the amount exceeds 64-bit minor units.
    pub fn amount(&self) -> Result<Money, AmountOutOfRange> {
        Money::round(WideDecimal::from(self.quantity.as_decimal()).times(self.unit_price.as_decimal())?, self.currency)
    }

    /// Returns the line item id of the charge on documents.
    pub fn line_item_id(&self) -> LineItemId {
        LineItemId::of_charge(&self.charge_ref)
    }
}

/// A charge to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCharge {
    /// The reference that the caller chose, or `None` to assign one.
    pub charge_ref: Option<ChargeRef>,
    /// The pricing of the product. It is required if several products of the contract bill the date.
    pub product_pricing_ref: Option<PricingRef>,
    /// The product. It is required if several products with that pricing bill the date.
    pub product_no: Option<ProductNo>,
    /// The date of the charge.
    pub date: NaiveDate,
    /// The name on documents.
    pub name: OneLine,
    /// The quantity.
    pub quantity: Quantity,
    /// The price of one unit.
    pub unit_price: SignedPrice,
    /// The name of the unit.
    pub unit: Option<OneLine>,
    /// The document that bills the charge.
    pub bill_with: BillWith,
    /// Whether the product's discount applies.
    pub discountable: bool,
    /// Whether the charge is for a good instead of a service.
    pub goods: bool,
    /// A note on the charge, not shown on documents.
    pub note: Option<Prose>,
    /// The reason for the charge.
    pub reason: Option<Prose>,
}

/// The changes to a charge. Fields without a value stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeEdit {
    /// The date of the charge.
    pub date: Option<NaiveDate>,
    /// The name on documents.
    pub name: Option<OneLine>,
    /// The quantity.
    pub quantity: Option<Quantity>,
    /// The price of one unit.
    pub unit_price: Option<SignedPrice>,
    /// A note on the charge, not shown on documents.
    pub note: Patch<Prose>,
}

impl ChargeEdit {
    /// Returns the charge with the changes applied. The result equals `present` if nothing changes.
    pub fn applied_to(&self, present: &Charge) -> Charge {
        Charge {
            date: self.date.unwrap_or(present.date),
            name: self.name.clone().unwrap_or_else(|| present.name.clone()),
            quantity: self.quantity.unwrap_or(present.quantity),
            unit_price: self.unit_price.unwrap_or(present.unit_price),
            note: self.note.clone().apply(present.note.clone()),
            ..present.clone()
        }
    }
}

/// The charges of a contract, including deleted ones. The amounts billed for deleted charges are reversed at their own rates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(BTreeMap<LineItemId, Charge>);

impl Charges {
    /// Creates the collection from stored charges.
    pub fn new(charges: impl IntoIterator<Item = Charge>) -> Self {
        Self(charges.into_iter().map(|charge| (charge.line_item_id(), charge)).collect())
    }

    /// Inserts a charge and replaces its previous revision.
    pub fn put(&mut self, charge: Charge) {
        self.0.insert(charge.line_item_id(), charge);
    }

    /// Returns the charge of a line item, deleted or not.
    pub fn of_line(&self, line_item_id: Option<&LineItemId>) -> Option<&Charge> {
        line_item_id.filter(|id| id.is_of_charge()).and_then(|id| self.0.get(id))
    }

    /// Returns the charge of a line item if the charge is above zero. Such a charge is a supply of its own; a charge below zero
    /// corrects its period (billing rules 7).
    pub fn supply_of(&self, line_item_id: Option<&LineItemId>) -> Option<&Charge> {
        self.of_line(line_item_id).filter(|charge| charge.unit_price > SignedPrice::from(Price::ZERO))
    }

    /// Returns the name of the charge of a line item.
    pub fn name_of(&self, line_item_id: Option<&LineItemId>) -> Option<&OneLine> {
        self.of_line(line_item_id).map(|charge| &charge.name)
    }

    /// Iterates over the charges that aren't deleted.
    pub fn live(&self) -> impl Iterator<Item = &Charge> {
        self.0.values().filter(|charge| !charge.deleted)
    }

    /// Iterates over the charges of a period that aren't deleted. The period of an earlier version of the contract may have
    /// another currency; it bills no charges that were recorded later.
    pub fn in_period(&self, period: &ProductPeriod<'_>) -> impl Iterator<Item = &Charge> {
        self.live().filter(|charge| {
            charge.product_no == period.product_no
                && period.days().contains(charge.date)
                && charge.currency == period.terms.pricing.currency
        })
    }
}
