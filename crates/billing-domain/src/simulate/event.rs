//! A usage event of a simulation, and changes of an event.

use chrono::NaiveDate;

use super::value::{Given, StepTime};
use crate::quantity::Quantity;
use crate::refs::{DocumentRef, ProductNo};
use crate::usage::{CountedEvent, UsageKey};

/// A usage event as stored by an application.
#[derive(Clone, Debug)]
pub(super) struct SimulatedEvent {
    pub(super) name: Option<String>,
    pub(super) counted: CountedEvent,
    pub(super) key: UsageKey,
    /// The product that the event was first matched to.
    pub(super) first_product: ProductNo,
    /// The document with the latest change of the event.
    pub(super) listed_on: DocumentRef,
    pub(super) is_deleted: bool,
}

impl SimulatedEvent {
    /// Moves the event with the events of one document to another document.
    pub(super) fn follow(&mut self, from: DocumentRef, to: DocumentRef, of: Option<(ProductNo, NaiveDate)>) {
        if self.listed_on == from && of.is_none_or(|period| period == (self.key.product_no, self.key.period_start)) {
            self.listed_on = to;
        }
    }
}

/// A change of an event.
#[derive(Clone, Debug, Default)]
pub struct EventChange {
    pub(super) at: Option<Given<StepTime>>,
    pub(super) quantity: Option<Given<Quantity>>,
}

impl EventChange {
    /// Sets the time of the event.
    #[must_use]
    pub fn at(mut self, at: impl Into<Given<StepTime>>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Sets the quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.quantity = Some(quantity.into());
        self
    }
}
