//! Rows about customers with prices of their own: prices by labels, distinct values, and limits.

use acceptance::when;
use serde_json::{Value, json};

use super::Run;
use crate::Outcome;
use crate::load::Outgoing;
use crate::settings::Settings;
use crate::stage::{Build, Stage};
use crate::traffic::{Customers, EVENTS, Spread};

pub(crate) const BY_LABEL: &str = "single events, 60 prices by label";
pub(crate) const BY_LABEL_HOT: &str = "single events, 60 prices by label, one document";
pub(crate) const LARGEST: &str = "single events, the largest counts";
pub(crate) const DISTINCT: &str = "single events, distinct values";
pub(crate) const WATCHED: &str = "single events, with a limit";
pub(crate) const WATCHED_HOT: &str = "single events, with a limit, one document";
pub(crate) const CREDITED: &str = "single events, with prepaid credit";
pub(crate) const CREDITED_HOT: &str = "single events, with prepaid credit, one document";

/// Prices, each with customers of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Labeled {
    /// Sixty line items, each for one of twenty models and one of three kinds.
    Prices,
    /// The largest quantity.
    Largest,
    /// The number of distinct users.
    Distinct,
    /// One unit price, and a limit that is never reached.
    Limited,
    /// One unit price, prepaid credit that is never used up, and a limit that rejects usage without it.
    Credited,
}

impl Labeled {
    /// Returns the prices that a run measures on a build. An earlier build may not know them.
    pub(super) fn wanted(settings: &Settings, build: &Build) -> Vec<Self> {
        if build.is_base() {
            return Vec::new();
        }
        let of_labels = settings.wants("labels").then_some([Self::Prices, Self::Largest, Self::Distinct]);
        let of_limits = settings.wants("limits").then_some([Self::Limited, Self::Credited]);
        of_labels.into_iter().flatten().chain(of_limits.into_iter().flatten()).collect()
    }

    /// Returns the reference of the usage product and of the pricing.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Prices => "tokens",
            Self::Largest => "peak",
            Self::Distinct => "users",
            Self::Limited => "limited",
            Self::Credited => "credited",
        }
    }

    /// Returns the limit of a customer, if the customers have one.
    pub(crate) fn limit(self, number: u64) -> Option<Value> {
        let limit = |max: u64| json!({"metric": "OWED", "customer_ref": self.customer(number), "currency": "EUR", "max": max});
        match self {
            Self::Limited => Some(limit(1_000_000_000)),
            Self::Credited => Some(limit(0)),
            Self::Prices | Self::Largest | Self::Distinct => None,
        }
    }

    /// Returns the credit of a customer, if the customers have some.
    pub(crate) fn grant(self, number: u64) -> Option<Value> {
        let customer = self.customer(number);
        let grant = || json!({"customer_ref": customer, "currency": "EUR", "amount": 1_000_000_000, "name": "Credit"});
        matches!(self, Self::Credited).then(grant)
    }

    /// Returns the reference of a customer.
    pub(crate) fn customer(self, number: u64) -> String {
        format!("{}-{number}", self.name())
    }

    /// Returns the usage product.
    pub(crate) fn usage_product(self) -> Value {
        let (aggregation, unique_by) = match self {
            Self::Prices | Self::Limited | Self::Credited => ("SUM", None),
            Self::Largest => ("MAX", None),
            Self::Distinct => ("UNIQUE", Some("user")),
        };
        json!({"usage_product_ref": self.name(), "name": self.name(), "aggregation": aggregation, "unique_by": unique_by})
    }

    /// Returns the number of running totals that the events of a customer in a period have.
    pub(crate) const fn totals(self) -> u64 {
        match self {
            Self::Prices => MODELS * KINDS.len() as u64,
            Self::Largest | Self::Distinct | Self::Limited | Self::Credited => 1,
        }
    }

    /// Returns the line items of the pricing.
    pub(crate) fn line_items(self) -> Value {
        let item = |id: String, condition: Value| {
            let price = json!({"model": "PER_UNIT", "unit_price": "0.000001"});
            json!({"line_item_id": id, "kind": "USAGE", "usage_product_ref": self.name(), "where": condition, "price": price})
        };
        let Self::Prices = self else { return json!([item(self.name().to_owned(), Value::Null)]) };
        let of_model = |model: u64| {
            KINDS.map(|kind| item(format!("{model}-{kind}"), json!({"model": [format!("model-{model}")], "kind": [kind]})))
        };
        (0..MODELS).flat_map(of_model).collect()
    }

    /// Returns requests for single events at the current time.
    pub(crate) fn singles(self, mut customers: Customers) -> impl FnMut() -> Option<Outgoing> {
        let mut sent = 0;
        move || {
            sent += 1;
            Some(Outgoing::post(EVENTS, self.event(&when::now(), customers.next(), sent)))
        }
    }

    /// Returns an event as JSON. The number of the event determines its labels.
    pub(crate) fn event(self, timestamp: &str, customer: u64, number: u64) -> String {
        let (customer, usage_product) = (self.customer(customer), self.name());
        let (model, kind) = (number % MODELS, KINDS[usize::try_from(number / MODELS % 3).unwrap_or_default()]);
        let user = number % USERS;
        format!(
            "{{\"timestamp\":\"{timestamp}\",\"customer_ref\":\"{customer}\",\"usage_product_ref\":\"{usage_product}\",\"quantity\":1.25,\
             \"additional_report_data\":{{\"model\":\"model-{model}\",\"kind\":\"{kind}\",\"user\":\"user-{user}\"}}}}"
        )
    }
}

/// Number of models in prices by labels.
const MODELS: u64 = 20;
/// The kinds of usage of a model.
const KINDS: [&str; 3] = ["input", "output", "cached"];
/// Number of users, whose events are distinguished.
const USERS: u64 = 997;

impl Run<'_> {
    /// Measures single events of customers with prices of their own. An earlier build may not know them.
    pub(super) fn priced(&mut self, turn: &str, stage: &Stage) -> Outcome<()> {
        if stage.build.is_base() {
            return Ok(());
        }
        let rows: &[(&'static str, Labeled, Spread)] = match turn {
            "labels" => &[
                (BY_LABEL, Labeled::Prices, Spread::Uniform),
                (BY_LABEL_HOT, Labeled::Prices, Spread::Hot),
                (LARGEST, Labeled::Largest, Spread::Uniform),
                (DISTINCT, Labeled::Distinct, Spread::Uniform),
            ],
            _ => &[
                (WATCHED, Labeled::Limited, Spread::Uniform),
                (WATCHED_HOT, Labeled::Limited, Spread::Hot),
                (CREDITED, Labeled::Credited, Spread::Uniform),
                (CREDITED_HOT, Labeled::Credited, Spread::Hot),
            ],
        };
        for (row, prices, spread) in rows.iter().copied() {
            let mut requests = prices.singles(self.customers(spread, stage.customers));
            let sample = stage.busy(self.settings.connections, self.settings.seconds, &mut requests)?;
            self.take(row, stage, &sample);
        }
        Ok(())
    }
}
