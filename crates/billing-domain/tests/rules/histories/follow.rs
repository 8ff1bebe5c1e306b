//! What a history asks of the ledger, for whoever asks the same of something else: of the use cases on a store.
#![allow(dead_code, reason = "followers read it: tests of other crates")]

use billing_domain::calendar::Timestamp;
use billing_domain::charge::{ChargeEdit, NewCharge};
use billing_domain::contract::amendment::{CancelAt, ContractEdit, QuantityChange};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ChargeRef, UsageProductRef};

use crate::histories::model::calendar::Date;
use crate::histories::spec::{Catalog, EntitySpec};
use crate::histories::world::{Checked, World};

/// One thing that is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Pricing(usize),
    /// As it is to be, and whether it becomes the organization's default.
    Entity(usize, EntitySpec, bool),
    Customer,
    Edit(ContractEdit),
    Quantity(QuantityChange),
    Cancel(CancelAt),
    Resume,
    Event {
        usage_product_ref: UsageProductRef,
        at: Timestamp,
        quantity: Quantity,
    },
    /// Of an event by its place among those that were taken.
    Update {
        event: usize,
        at: Option<Timestamp>,
        quantity: Option<Quantity>,
    },
    Delete(usize),
    /// A charge, and whether what it corrects is issued at once.
    Charge(NewCharge, bool),
    EditCharge(ChargeRef, ChargeEdit, bool),
    DeleteCharge(ChargeRef),
    /// Of a document by its place among those that were opened.
    Issue(usize),
    Void(usize),
    Money(MoneyDeed),
    Run,
}

/// What money is asked to do. Documents are told by their places, payments by theirs among those that were recorded, applications by
/// theirs among those that hold.
#[derive(Clone, Debug)]
pub(crate) enum MoneyDeed {
    Pay { place: usize, facts: NewPayment, takes_more: bool },
    Reverse { payment: usize, date: Option<Date> },
    Refund { source: SourceDeed, facts: NewPayment },
    Apply { source: SourceDeed, place: usize, amount: String },
    Unapply(usize),
    WriteOff { place: usize, undo: bool },
}

/// Where money comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SourceDeed {
    Document(usize),
    Payment(usize),
}

/// Whoever does the same elsewhere, and compares.
pub(crate) trait Follower {
    /// A contract is made, by what the catalog has.
    fn begin(&mut self, catalog: &Catalog, products: Vec<RequestedProduct>, world: &World) -> Checked;

    /// The ledger did as it was asked, or refused.
    fn follow(&mut self, deed: Deed, taken: bool, world: &World) -> Checked;
}
