//! What a contract costs, told apart from the service: whole cents, whole months, every event counted anew each time.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::random::Random;
use crate::when::Day;
use crate::{books, catalog};

/// The fixed line item's price.
const FEE: i64 = 4900;
/// Days of the current month that have begun.
const DAYS_BEGUN: i64 = 11;
/// Months that are over when a history begins; the current one comes next.
pub const OVER: i64 = 2;

/// How calls are priced, in cents.
#[derive(Clone, Copy, Debug)]
pub enum Price {
    /// Each costs seven.
    PerUnit,
    /// By the tiers of the API plan.
    Graduated,
}

impl Price {
    fn json(self) -> Value {
        match self {
            Self::PerUnit => json!({"model": "PER_UNIT", "unit_price": "0.07"}),
            Self::Graduated => catalog::plan("", "")["line_items"][1]["price"].clone(),
        }
    }

    fn of(self, quantity: i64) -> i64 {
        match self {
            Self::PerUnit => 7 * quantity,
            Self::Graduated => 10 * quantity.min(100) + 5 * (quantity.min(1000) - 100).max(0) + (quantity - 1000).max(0),
        }
    }
}

/// An event as it should be.
#[derive(Clone, Debug)]
pub struct Event {
    /// What it is known by.
    pub event_ref: Value,
    /// When it happened.
    pub day: Day,
    /// How many calls.
    pub quantity: i64,
}

/// A contract of one product over whole months, and what was reported for it.
#[derive(Clone, Debug)]
pub struct Model {
    /// Whose it is.
    pub customer: String,
    /// The first day.
    pub start: Day,
    /// How many months it has.
    pub months: i64,
    /// When its usage is billed.
    pub payment_time: &'static str,
    /// When its documents are due.
    pub net_terms: Value,
    price: Price,
    prepaid: i64,
    /// Those that count.
    pub events: Vec<Event>,
    /// Whether each month has the fixed line item, and what the newest version says of the months to come.
    has_fee: Vec<bool>,
    /// Those of the newest version.
    pub terms: Terms,
    /// Whether it ends with the current month, or within it.
    pub is_cancelled: bool,
    /// Whether the current month ends today.
    pub ends_today: bool,
}

/// What edits change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether there is the fixed line item.
    pub fee: bool,
    /// In percent.
    pub discount: i64,
    /// In percent.
    pub tax: i64,
}

impl Model {
    /// Any that a seed makes.
    ///
    /// # Panics
    /// Never.
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
            price: *random.one_of(&[Price::PerUnit, Price::Graduated]),
            prepaid: if payment_time == "BEFORE_USE" && random.percent(50) { 500 } else { 0 },
            events: Vec::new(),
            has_fee: vec![true; usize::try_from(months).expect("few")],
            terms: Terms { fee: true, discount: 0, tax: 19 },
            is_cancelled: false,
            ends_today: false,
        }
    }

    /// The same contract, each of whose calls costs the same, whenever it comes.
    #[must_use]
    pub fn by_the_call(self) -> Self {
        let net_terms = json!("DUE_UPON_RECEIPT");
        Self { payment_time: "AFTER_USE", net_terms, price: Price::PerUnit, prepaid: 0, ..self }
    }

    /// The line items of its pricing.
    pub fn pricing(&self) -> Value {
        let mut calls = catalog::calls(&self.price.json());
        if self.prepaid > 0 {
            calls["prepaid_quantity"] = json!(self.prepaid);
        }
        json!([catalog::fixed("fee", "49.00"), calls])
    }

    /// The contract as it is agreed.
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

    /// The first day of a month.
    pub fn month(&self, index: i64) -> Day {
        self.start.plus_months(index)
    }

    /// The edit that leads to the terms there should be.
    pub fn edit(&self, pricing: &str, terms: Terms, include_current: bool) -> Value {
        let ids: &[&str] = if terms.fee { &["fee", "calls"] } else { &["calls"] };
        let line_items: Vec<Value> = ids.iter().map(|id| json!({"line_item_id": id})).collect();
        json!({"include_current_invoice": include_current, "products": [{
            "product_pricing_ref": pricing,
            "line_items": line_items,
            "discount": terms.discount,
            "tax": terms.tax,
        }]})
    }

    /// The edit was taken.
    ///
    /// # Panics
    /// Never.
    pub fn edited(&mut self, terms: Terms, include_current: bool) {
        let from = if include_current { OVER } else { OVER + 1 };
        for fee in self.has_fee.iter_mut().skip(usize::try_from(from).expect("few")) {
            *fee = terms.fee;
        }
        self.terms = terms;
    }

    /// The cancel was taken.
    pub fn cancelled(&mut self, now: bool) {
        self.is_cancelled = true;
        self.ends_today |= now;
        self.months = OVER + 1;
    }

    /// What a month's line item has to come to, in cents.
    fn expected(&self, month: i64, line_item: &str) -> i64 {
        if month >= self.months {
            return 0;
        }
        let (first, end) = (self.month(month), self.month(month + 1));
        if line_item == "calls" {
            let used = self.events.iter().filter(|event| first <= event.day && event.day < end);
            return self.price.of(used.map(|event| event.quantity).sum::<i64>().max(self.prepaid));
        }
        let days = first.days_until(end);
        let fee = if self.has_fee[usize::try_from(month).expect("few")] { FEE } else { 0 };
        if month == OVER && self.ends_today { (2 * fee * DAYS_BEGUN + days) / (2 * days) } else { fee }
    }

    /// Compares every document there is with what they have to come to. A month whose document isn't open yet may
    /// have nothing billed; when `all_due` is, months that are over may not.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self, documents: &[Value], all_due: bool) -> Result<(), String> {
        let mut billed: BTreeMap<(String, String), i64> = BTreeMap::new();
        let mut carried: Vec<(String, String)> = Vec::new();
        for document in documents.iter().filter(|document| document["state"] != "VOID") {
            let sign = if document["kind"] == "CREDIT" { -1 } else { 1 };
            for [line_item, service, _, amount] in books::lines(document) {
                // A credit for unused days names the days given back.
                let month = (0..=OVER + 1).map(|month| self.month(month).to_string()).filter(|start| *start <= service).max();
                let key = (month.unwrap_or(service), line_item);
                *billed.entry(key.clone()).or_default() += sign * cents(&amount);
                let in_advance = document["kind"] == "INVOICE" && self.payment_time == "BEFORE_USE" && key.1 == "calls";
                if document["purpose"] == "REGULAR" && !in_advance {
                    carried.push(key);
                }
            }
        }
        // A month that ends today was billed at once; where that was put out of force, it is due again when the day is over.
        let current = json!(self.month(OVER).to_string());
        let is_undone = |document: &Value| {
            document["state"] == "VOID" && document["purpose"] == "REGULAR" && document["period_start"] == current
        };
        let ends_billed = self.ends_today && !documents.iter().any(is_undone);
        for month in 0..=OVER + 1 {
            for line_item in ["fee", "calls"] {
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

/// An amount as it is written, in cents.
fn cents(amount: &str) -> i64 {
    let digits: String = amount.chars().filter(|character| *character != '.').collect();
    assert_eq!(amount.chars().rev().position(|character| character == '.'), Some(2), "{amount}");
    digits.parse().expect("an amount")
}
