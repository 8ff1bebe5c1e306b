//! Charges: one-off amounts with a date, manual credit notes among them (billing rules 5). What a charge is to
//! its period's documents is the ledger's business.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use crate::access::Actor;
use crate::calendar::Timestamp;
use crate::contract::ProductPeriod;
use crate::decimal::exact_mul;
use crate::document::lines::BillWith;
use crate::money::{AmountOutOfRange, Currency, Money, SignedPrice};
use crate::patch::Patch;
use crate::quantity::Quantity;
use crate::refs::{ChargeRef, ContractRef, CustomerId, LineItemId, PricingRef, ProductNo};
use crate::text::{OneLine, Prose};

/// A charge as its latest revision has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// As callers name it.
    pub charge_ref: ChargeRef,
    /// Who pays.
    pub customer_id: CustomerId,
    /// The contract it is charged in.
    pub contract_ref: ContractRef,
    /// The product whose documents bill it.
    pub product_no: ProductNo,
    /// The day it counts on: its period is the product's that contains it.
    pub date: NaiveDate,
    /// Shown on documents.
    pub name: OneLine,
    /// How many.
    pub quantity: Quantity,
    /// The price of one; below zero it gives money back.
    pub unit_price: SignedPrice,
    /// What one is called.
    pub unit: Option<OneLine>,
    /// The product's, in the period it counts in.
    pub currency: Currency,
    /// Whether the document of the period's fixed items bills it, or that of its usage.
    pub bill_with: BillWith,
    /// Whether the product's discount applies to it.
    pub discountable: bool,
    /// For whoever reads it.
    pub note: Option<Prose>,
    /// Why it was made.
    pub reason: Option<Prose>,
    /// When it was first stored.
    pub recorded_at: Timestamp,
    /// Counts from 1.
    pub revision: u32,
    /// When this revision was made.
    pub revised_at: Timestamp,
    /// Who made this revision.
    pub revised_by: Actor,
    /// Whether this revision deleted it.
    pub deleted: bool,
}

impl Charge {
    /// `round(quantity × unit_price)`, whether it counts or not.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when exact decimals can't hold it.
    pub fn amount(&self) -> Result<Money, AmountOutOfRange> {
        Money::round(exact_mul(self.quantity.as_decimal(), self.unit_price.as_decimal())?, self.currency)
    }

    /// What its line is for.
    pub fn line_item_id(&self) -> LineItemId {
        LineItemId::of_charge(&self.charge_ref)
    }
}

/// A charge as it is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCharge {
    /// As the caller names it; assigned when left out.
    pub charge_ref: Option<ChargeRef>,
    /// The product's pricing; needed where several products of the contract bill the day.
    pub product_pricing_ref: Option<PricingRef>,
    /// The day it counts on.
    pub date: NaiveDate,
    /// Shown on documents.
    pub name: OneLine,
    /// How many.
    pub quantity: Quantity,
    /// The price of one.
    pub unit_price: SignedPrice,
    /// What one is called.
    pub unit: Option<OneLine>,
    /// With what it is billed.
    pub bill_with: BillWith,
    /// Whether the product's discount applies to it.
    pub discountable: bool,
    /// For whoever reads it.
    pub note: Option<Prose>,
    /// Why it is made.
    pub reason: Option<Prose>,
}

/// What of a charge is to change; the rest is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChargeEdit {
    /// The day it counts on.
    pub date: Option<NaiveDate>,
    /// Shown on documents.
    pub name: Option<OneLine>,
    /// How many.
    pub quantity: Option<Quantity>,
    /// The price of one.
    pub unit_price: Option<SignedPrice>,
    /// For whoever reads it.
    pub note: Patch<Prose>,
}

impl ChargeEdit {
    /// The charge with the changes; the charge as it is where nothing changes.
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

/// The charges of a contract. Deleted ones are among them: what they have billed is taken back at their rates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charges(BTreeMap<LineItemId, Charge>);

impl Charges {
    /// From stored charges.
    pub fn new(charges: impl IntoIterator<Item = Charge>) -> Self {
        Self(charges.into_iter().map(|charge| (charge.line_item_id(), charge)).collect())
    }

    /// Puts a charge in the place of its revision before.
    pub fn put(&mut self, charge: Charge) {
        self.0.insert(charge.line_item_id(), charge);
    }

    /// The charge that a line is of, deleted or not.
    pub fn of_line(&self, line_item_id: Option<&LineItemId>) -> Option<&Charge> {
        line_item_id.filter(|id| id.is_of_charge()).and_then(|id| self.0.get(id))
    }

    /// The name of the charge that a line is of.
    pub fn name_of(&self, line_item_id: Option<&LineItemId>) -> Option<&OneLine> {
        self.of_line(line_item_id).map(|charge| &charge.name)
    }

    /// Those that aren't deleted.
    pub fn live(&self) -> impl Iterator<Item = &Charge> {
        self.0.values().filter(|charge| !charge.deleted)
    }

    /// Those that count in a period.
    pub fn in_period(&self, period: &ProductPeriod<'_>) -> impl Iterator<Item = &Charge> {
        self.live().filter(|charge| charge.product_no == period.product_no && period.days().contains(charge.date))
    }
}
