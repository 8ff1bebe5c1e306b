//! A model of the cost of a contract, independent of the service.
//!
//! The model uses whole cents and whole months, and it counts every event again each time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::random::Random;
use crate::when::Day;
use crate::{books, catalog};

/// The price of the fixed line item, in cents.
const FEE: i64 = 4900;
/// The number of days of the current month that have begun.
const DAYS_BEGUN: i64 = 11;
/// The number of past months when a history begins. The current month comes next.
pub const OVER: i64 = 2;

/// The price of calls, in cents.
#[derive(Clone, Copy, Debug)]
pub enum Price {
    /// Seven cents per call.
    PerUnit,
    /// The tiers of the API plan.
    Graduated,
    /// Seven cents per call of kind `a`, five per call of kind `b`, and one for each other call, in line items of their own.
    ByKind,
}

/// The kinds of calls, a label of events.
pub const KINDS: [&str; 3] = ["a", "b", "c"];

impl Price {
    fn json(self) -> Value {
        match self {
            Self::PerUnit | Self::ByKind => json!({"model": "PER_UNIT", "unit_price": "0.07"}),
            Self::Graduated => catalog::plan("", "")["line_items"][1]["price"].clone(),
        }
    }

    fn of(self, quantity: i64) -> i64 {
        match self {
            Self::PerUnit | Self::ByKind => 7 * quantity,
            Self::Graduated => 10 * quantity.min(100) + 5 * (quantity.min(1000) - 100).max(0) + (quantity - 1000).max(0),
        }
    }
}

/// An expected event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The reference of the event.
    pub event_ref: Value,
    /// The day of the event.
    pub day: Day,
    /// The number of calls.
    pub quantity: i64,
    /// The kind of the calls.
    pub kind: &'static str,
}

/// A contract with one product over whole months, and the usage reported for it.
#[derive(Clone, Debug)]
pub struct Model {
    /// The customer of the contract.
    pub customer: String,
    /// The first day of the contract.
    pub start: Day,
    /// The number of months of the contract.
    pub months: i64,
    /// The payment time, which determines when usage is billed.
    pub payment_time: &'static str,
    /// The net terms, which determine when documents are due.
    pub net_terms: Value,
    price: Price,
    prepaid: i64,
    /// The events that count.
    pub events: Vec<Event>,
    /// Whether each month has the fixed line item. The newest version of the contract determines the future months.
    has_fee: Vec<bool>,
    /// The terms of the newest version.
    pub terms: Terms,
    /// Whether the contract ends with the current month or within it.
    pub is_cancelled: bool,
    /// Whether the current month ends today.
    pub ends_today: bool,
}

/// The terms that edits change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether the contract has the fixed line item.
    pub fee: bool,
    /// The discount in percent.
    pub discount: i64,
    /// The tax in percent.
    pub tax: i64,
}

impl Model {
    /// Creates a random model. The seed of `random` determines the model.
    ///
    /// # Panics
    /// Never panics.
    pub fn new(random: &mut Random, customer: &str) -> Self {
        let payment_time = *random.one_of(&["AFTER_USE", "DURING_USE", "BEFORE_USE"]);
        let net_terms = [json!("DUE_UPON_RECEIPT"), json!(30), json!("DUE_UPON_USAGE")];
        let months = OVER + 1 + random.between(0, 1);
        Self {
            customer: customer.to_owned(),
            start: Day::today().plus_days(1 - DAYS_BEGUN).plus_months(-OVER),
            months,
            payment_time,
            net_terms: random.one_of(&net_terms).clone(),
            price: *random.one_of(&[Price::PerUnit, Price::Graduated, Price::ByKind]),
            prepaid: if payment_time == "BEFORE_USE" && random.percent(50) { 500 } else { 0 },
            events: Vec::new(),
            has_fee: vec![true; usize::try_from(months).expect("few")],
            terms: Terms { fee: true, discount: 0, tax: 19 },
            is_cancelled: false,
            ends_today: false,
        }
    }

    /// Returns the same contract with the same price for every call, independent of the time of the call.
    #[must_use]
    pub fn by_the_call(self) -> Self {
        let net_terms = json!("DUE_UPON_RECEIPT");
        Self { payment_time: "AFTER_USE", net_terms, price: Price::PerUnit, prepaid: 0, ..self }
    }

    /// Returns the line items of the pricing.
    pub fn pricing(&self) -> Value {
        let mut calls = catalog::calls(&self.price.json());
        if self.prepaid > 0 {
            calls["prepaid_quantity"] = json!(self.prepaid);
        }
        let fee = catalog::fixed("fee", "49.00");
        let Price::ByKind = self.price else { return json!([fee, calls]) };
        calls["where"] = json!({"kind": ["a"]});
        let item = |id: &str, unit_price: &str, counts: Value| {
            let price = json!({"model": "PER_UNIT", "unit_price": unit_price});
            catalog::with(catalog::calls(&price), &catalog::with(json!({"line_item_id": id, "name": id}), &counts))
        };
        let bulk = item("bulk", "0.05", json!({"where": {"kind": ["b"]}}));
        json!([fee, calls, bulk, item("others", "0.01", json!({"rest": true}))])
    }

    /// Returns the line items of usage.
    const fn metered(&self) -> &'static [&'static str] {
        match self.price {
            Price::PerUnit | Price::Graduated => &["calls"],
            Price::ByKind => &["calls", "bulk", "others"],
        }
    }

    /// Returns the body that creates the contract.
    pub fn contract(&self, pricing: &str) -> Value {
        json!({"customer_ref": self.customer, "products": [{
            "product_pricing_ref": pricing,
            "billing_start_date": self.start.to_string(),
            "billing_end_date": self.month(self.months).plus_days(-1).to_string(),
            "issue_day": self.start.to_string(),
            "payment_time": self.payment_time,
            "net_terms": self.net_terms,
        }]})
    }

    /// Returns the first day of a month.
    pub fn month(&self, index: i64) -> Day {
        self.start.plus_months(index)
    }

    /// Returns the body of the edit that leads to the given terms.
    pub fn edit(&self, pricing: &str, terms: Terms, include_current: bool) -> Value {
        let ids = terms.fee.then_some("fee").into_iter().chain(self.metered().iter().copied());
        let line_items: Vec<Value> = ids.map(|id| json!({"line_item_id": id})).collect();
        json!({"include_current_invoice": include_current, "products": [{
            "product_pricing_ref": pricing,
            "line_items": line_items,
            "discount": terms.discount,
            "tax": terms.tax,
        }]})
    }

    /// Records that the service accepted an edit.
    ///
    /// # Panics
    /// Never panics.
    pub fn edited(&mut self, terms: Terms, include_current: bool) {
        let from = if include_current { OVER } else { OVER + 1 };
        for fee in self.has_fee.iter_mut().skip(usize::try_from(from).expect("few")) {
            *fee = terms.fee;
        }
        self.terms = terms;
    }

    /// Records that the service accepted a cancellation.
    pub fn cancelled(&mut self, now: bool) {
        self.is_cancelled = true;
        self.ends_today |= now;
        self.months = OVER + 1;
    }

    /// Returns the expected amount of a line item in a month, in cents.
    fn expected(&self, month: i64, line_item: &str) -> i64 {
        if month >= self.months {
            return 0;
        }
        let (first, end) = (self.month(month), self.month(month + 1));
        let used = |is_counted: &dyn Fn(&str) -> bool| {
            let used = self.events.iter().filter(|event| first <= event.day && event.day < end && is_counted(event.kind));
            used.map(|event| event.quantity).sum::<i64>()
        };
        match (line_item, self.price) {
            ("calls", Price::ByKind) => return self.price.of(used(&|kind| kind == "a").max(self.prepaid)),
            ("calls", _) => return self.price.of(used(&|_| true).max(self.prepaid)),
            ("bulk", _) => return 5 * used(&|kind| kind == "b"),
            ("others", _) => return used(&|kind| kind == "c"),
            _ => {}
        }
        let days = first.days_until(end);
        let fee = if self.has_fee[usize::try_from(month).expect("few")] { FEE } else { 0 };
        if month == OVER && self.ends_today { (2 * fee * DAYS_BEGUN + days) / (2 * days) } else { fee }
    }

    /// Compares all documents with the expected amounts.
    ///
    /// A month whose document is not open yet may have nothing billed. If `all_due` is true, past months must be
    /// billed.
    ///
    /// # Errors
    /// Returns a description of the first wrong amount, or of the unexpected lines.
    pub fn check(&self, documents: &[Value], all_due: bool) -> Result<(), String> {
        let mut billed: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut carried: Vec<(String, String)> = Vec::new();
        for document in documents.iter().filter(|document| document["state"] != "VOID") {
            let sign = if document["kind"] == "CREDIT" { -1 } else { 1 };
            for [line_item, service, _, amount] in books::lines(document) {
                // A credit for unused days names the credited days.
                let month = (0..=OVER + 1).map(|month| self.month(month).to_string()).filter(|start| *start <= service).max();
                let key = (month.unwrap_or(service), line_item);
                *billed.entry(key.clone()).or_default() += sign * cents(&amount);
                let in_advance = document["kind"] == "INVOICE" && self.payment_time == "BEFORE_USE" && key.1 == "calls";
                if document["purpose"] == "REGULAR" && !in_advance {
                    carried.push(key);
                }
            }
        }
        // A month that ends today was billed at once. If its document was voided, the month is due again after the day
        // ends.
        let current = json!(self.month(OVER).to_string());
        let is_undone = |document: &Value| {
            document["state"] == "VOID" && document["purpose"] == "REGULAR" && document["period_start"] == current
        };
        let ends_billed = self.ends_today && !documents.iter().any(is_undone);
        for month in 0..=OVER + 1 {
            for line_item in ["fee"].iter().chain(self.metered()).copied() {
                let key = (self.month(month).to_string(), line_item.to_owned());
                let (expected, found) = (self.expected(month, line_item), billed.remove(&key).unwrap_or_default());
                let must_be = carried.contains(&key) || (all_due && (month < OVER || (month == OVER && ends_billed)));
                let prepaid = if line_item == "calls" && self.prepaid > 0 { self.price.of(self.prepaid) } else { 0 };
                if found != expected && (must_be || (found != 0 && found != prepaid)) {
                    return Err(format!("{line_item} of {}: {found} cents are billed instead of {expected}", key.0));
                }
            }
        }
        if billed.is_empty() { Ok(()) } else { Err(format!("lines nobody expects: {billed:?}")) }
    }
}

/// Converts a written amount to cents.
fn cents(amount: &str) -> i64 {
    let digits: String = amount.chars().filter(|character| *character != '.').collect();
    assert_eq!(amount.chars().rev().position(|character| character == '.'), Some(2), "{amount}");
    digits.parse().expect("an amount")
}
