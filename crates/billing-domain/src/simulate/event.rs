//! A usage event of a simulation, and changes of an event.

use chrono::NaiveDate;

use super::value::{Given, StepTime};
use crate::labels::LabelDigest;
use crate::quantity::Quantity;
use crate::refs::{DocumentRef, ProductNo};
use crate::usage::{CountedEvent, ReportData, ReportValue, UsageKey};

/// A usage event as stored by an application.
#[derive(Clone, Debug)]
pub(super) struct SimulatedEvent {
    pub(super) name: Option<String>,
    pub(super) counted: CountedEvent,
    /// The key of the running total of all line items in the event's period.
    pub(super) period_key: UsageKey,
    pub(super) labels: Option<ReportData>,
    /// The digest of the label that `UNIQUE` counts.
    pub(super) unique_digest: Option<LabelDigest>,
    /// The product that the event was first matched to.
    pub(super) first_product: ProductNo,
    /// The document with the latest change of the event.
    pub(super) listed_on: DocumentRef,
    pub(super) is_deleted: bool,
}

impl SimulatedEvent {
    /// Moves the event with the events of one document to another document.
    pub(super) fn follow(&mut self, from: DocumentRef, to: DocumentRef, of: Option<(ProductNo, NaiveDate)>) {
        if self.listed_on == from && of.is_none_or(|period| period == (self.period_key.product_no, self.period_key.period_start))
        {
            self.listed_on = to;
        }
    }
}

/// Labels of an event as text.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(Vec<(String, ReportValue)>);

impl Labels {
    pub(super) const NONE: Self = Self(Vec::new());

    pub(super) fn of(labels: &[(&str, &str)]) -> Self {
        Self(labels.iter().map(|(key, text)| ((*key).to_owned(), ReportValue::Text((*text).to_owned()))).collect())
    }

    pub(super) fn read(&self) -> Option<ReportData> {
        (!self.0.is_empty()).then(|| ReportData::new(self.0.clone()))
    }
}

/// A change of an event.
#[derive(Clone, Debug, Default)]
pub struct EventChange {
    pub(super) at: Option<Given<StepTime>>,
    pub(super) quantity: Option<Given<Quantity>>,
    pub(super) labels: Option<Labels>,
}

impl EventChange {
    /// Sets the time of the event.
    #[must_use]
    pub fn at(mut self, at: impl Into<Given<StepTime>>) -> Self {
        self.at = Some(at.into());
        self
    }

    /// Replaces the labels.
    #[must_use]
    pub fn labels(mut self, labels: &[(&str, &str)]) -> Self {
        self.labels = Some(Labels::of(labels));
        self
    }

    /// Sets the quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: impl Into<Given<Quantity>>) -> Self {
        self.quantity = Some(quantity.into());
        self
    }
}
