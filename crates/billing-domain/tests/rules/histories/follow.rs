//! The requests of a history to the ledger, so that other tests can send the same requests to the use cases on a store.
#![allow(dead_code, reason = "followers in the tests of other crates read it")]

use billing_domain::calendar::Timestamp;
use billing_domain::charge::{ChargeEdit, NewCharge};
use billing_domain::contract::amendment::{CancelAt, ContractEdit, QuantityChange};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::credit::{CreditBalance, CreditGrant, CreditGrantEdit, NewCreditGrant};
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ChargeRef, CreditGrantRef, EntityRef, UsageProductRef};
use billing_domain::usage::ReportData;

use crate::histories::model::calendar::Date;
use crate::histories::spec::{Catalog, EntitySpec};
use crate::histories::world::{Checked, World};

/// A request of a history.
#[derive(Clone, Debug)]
pub(crate) enum Deed {
    Pricing(usize),
    /// The entity's new state, and whether it becomes the organization's default.
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
        labels: Option<ReportData>,
    },
    /// Updates an event, named by its index among the recorded events.
    Update {
        event: usize,
        at: Option<Timestamp>,
        quantity: Option<Quantity>,
        labels: Patch<ReportData>,
    },
    Delete(usize),
    /// A charge, and whether its corrections are issued at once.
    Charge(NewCharge, bool),
    EditCharge(ChargeRef, ChargeEdit, bool),
    DeleteCharge(ChargeRef),
    /// Issues a document, named by its index among the opened documents.
    Issue(usize),
    Void(usize),
    Money(MoneyDeed),
    Grant(GrantDeed),
    /// Edits a grant, named by its index among the created ones.
    EditGrant(usize, CreditGrantEdit),
    Run,
}

/// Credit to grant. The sale is named by its index among the opened documents.
#[derive(Clone, Debug)]
pub(crate) struct GrantDeed {
    pub(crate) new: NewCreditGrant,
    pub(crate) sale: Option<usize>,
}

/// A money request. Indexes name documents among the opened ones, payments among the recorded ones, and applications among
/// those in force.
#[derive(Clone, Debug)]
pub(crate) enum MoneyDeed {
    Pay { place: usize, facts: NewPayment, takes_more: bool },
    Deposit { entity_ref: EntityRef, currency: Currency, facts: NewPayment },
    Reverse { payment: usize, date: Option<Date> },
    Refund { source: SourceDeed, facts: NewPayment },
    Apply { source: SourceDeed, place: usize, amount: String },
    Unapply(usize),
    WriteOff { place: usize, undo: bool },
}

/// The source of a refund or an application.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SourceDeed {
    Document(usize),
    Payment(usize),
}

/// Receives each request of a history, carries it out elsewhere and compares the results.
pub(crate) trait Follower {
    /// Creates the contract from the catalog and the products.
    fn begin(&mut self, catalog: &Catalog, products: Vec<RequestedProduct>, world: &World) -> Checked;

    /// Carries out a request that the ledger accepted or refused.
    fn follow(&mut self, deed: Deed, taken: bool, world: &World) -> Checked;
}

impl World {
    /// Returns the grants in the order of creation.
    pub(crate) fn grant_refs(&self) -> Vec<CreditGrantRef> {
        self.book.credit().map_or_else(Vec::new, |credit| credit.grants.iter().map(|grant| grant.grant_ref).collect())
    }

    /// Returns the grants with the amounts that the ledger has.
    pub(crate) fn grant_balances(&self) -> Result<Vec<(CreditGrant, CreditBalance)>, String> {
        let Some(credit) = self.credit_now()? else { return Ok(Vec::new()) };
        let mut book = self.book.clone();
        book.set_credit(credit.clone());
        let draws = book.draft_draws().map_err(|error| error.to_string())?;
        let balance = |grant: &CreditGrant| Ok((grant.clone(), grant.balance(&draws).map_err(|error| error.to_string())?));
        credit.grants.iter().map(balance).collect()
    }
}
