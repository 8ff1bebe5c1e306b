//! A usage event of a simulation, and what can be changed of it.

use chrono::NaiveDate;

use super::value::{Given, StepTime};
use crate::quantity::Quantity;
use crate::refs::{DocumentRef, ProductNo};
use crate::usage::{CountedEvent, UsageKey};

/// A usage event as an application keeps it.
#[derive(Clone, Debug)]
pub(super) struct SimulatedEvent {
    pub(super) name: Option<String>,
    pub(super) counted: CountedEvent,
    pub(super) key: UsageKey,
    /// The document that its latest change stands on.
    pub(super) standing: DocumentRef,
    pub(super) is_deleted: bool,
}

impl SimulatedEvent {
    /// Goes along to another document with the events of one.
    pub(super) fn follow(&mut self, from: DocumentRef, to: DocumentRef, of: Option<(ProductNo, NaiveDate)>) {
        if self.standing == from && of.is_none_or(|period| period == (self.key.product_no, self.key.period_start)) {
            self.standing = to;
        }
    }
}

/// What changes of an event.
#[derive(Clone, Debug, Default)]
pub struct EventChange {
    pub(super) at: Option<Given<StepTime>>,
    pub(super) quantity: Option<Given<Quantity>>,
}

impl EventChange {
    /// Sets when it happened.
    #[must_use]
    pub fn at(mut self, at: impl Into<Given<StepTime>>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Sets its quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.quantity = Some(quantity.into());
        self
    }
}
