//! A naive model of billing, written only from the rules. It stores raw events and agreed terms, and computes everything
//! again at each call. The model has no documents. The caller passes the facts about documents that the model needs.

mod amend;
pub(crate) mod calendar;
mod dues;
pub(crate) mod rating;
pub(crate) mod terms;

use std::collections::BTreeMap;

use billing_domain::calendar::Timestamp;

use self::calendar::{Date, plus, service_date};
use self::terms::{Period, Product, Terms};
use crate::histories::spec::{Amount, Catalog, Category, Element, Label, Rate, SignedPrice, TaxSpec, TaxSpecs};
pub(crate) use amend::{Facts, LastDay, QuantityRequest};
pub(crate) use dues::{Part, Slot, With};

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) usage: usize,
    pub(crate) at: Timestamp,
    /// The service date, in the time zone at the moment when the event was recorded or moved.
    pub(crate) day: Date,
    pub(crate) product: u16,
    /// The instant and the product when the event was recorded.
    pub(crate) first: (Timestamp, u16),
    pub(crate) quantity: Amount,
    pub(crate) label: Label,
    pub(crate) deleted: bool,
}

/// A charge after its latest change.
#[derive(Clone, Debug)]
pub(crate) struct Charge {
    /// The id of the charge's line item.
    pub(crate) id: String,
    pub(crate) product: u16,
    pub(crate) day: Date,
    pub(crate) quantity: Amount,
    pub(crate) price: SignedPrice,
    pub(crate) with: With,
    pub(crate) discountable: bool,
    pub(crate) currency: &'static str,
    /// The instant when the charge was first recorded.
    pub(crate) recorded: Timestamp,
    pub(crate) deleted: bool,
}

/// The verdict of the rules on an operation.
#[derive(Clone, Debug)]
pub(crate) enum Verdict<T> {
    /// The operation must be accepted.
    Take(T),
    /// The operation must be refused.
    Refuse(&'static str),
    /// The operation may be accepted or refused: the rules leave it open, or the model does not track its conditions. An accepted
    /// operation has this effect.
    May(&'static str, T),
    /// The model does not cover the operation, which is not run.
    Skip(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Pending,
    Active,
    Cancelling,
    Cancelled,
    Completed,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) catalog: Catalog,
    pub(crate) products: Vec<Product>,
    /// The products before the contract was cancelled.
    pub(crate) before_cancel: Option<Vec<Product>>,
    /// The earliest first day that was ever agreed for a product.
    pub(crate) first_day: Date,
    pub(crate) events: Vec<Event>,
    pub(crate) charges: Vec<Charge>,
    /// Whether the contract was ever resumed.
    pub(crate) was_resumed: bool,
}

impl Model {
    /// Creates a contract.
    pub(crate) fn created(catalog: Catalog, elements: &[Element]) -> Result<Self, &'static str> {
        let products = elements
            .iter()
            .zip(0..)
            .map(|(element, no)| Terms::agree(element, &catalog).map(|terms| Product::new(no, terms)))
            .collect::<Result<Vec<_>, _>>()?;
        if amend::comes_twice(&products) {
            return Err("duplicate_product");
        }
        let first_day = products.iter().map(Product::start).min().ok_or("no product")?;
        Ok(Self {
            catalog,
            products,
            before_cancel: None,
            first_day,
            events: Vec::new(),
            charges: Vec::new(),
            was_resumed: false,
        })
    }

    pub(crate) fn zone(&self, entity: usize) -> &'static str {
        self.catalog.entities[entity].zone
    }

    pub(crate) fn product(&self, no: u16) -> &Product {
        self.products.iter().find(|product| product.no == no).expect("products are kept")
    }

    /// Returns today's date for a product, or `None` if its entities have different dates.
    pub(crate) fn today(&self, product: &Product, now: Timestamp) -> Option<Date> {
        let mut days = product.whole.iter().map(|stretch| service_date(self.zone(stretch.terms.entity), now));
        let first = days.next()?;
        days.all(|day| day == first).then_some(first)
    }

    /// Returns all of today's dates in the zones of the entities.
    pub(crate) fn todays(&self, now: Timestamp) -> Vec<Date> {
        let stretches = self.products.iter().flat_map(|product| &product.whole);
        let mut days: Vec<Date> = stretches.map(|stretch| service_date(self.zone(stretch.terms.entity), now)).collect();
        days.sort_unstable();
        days.dedup();
        days
    }

    fn state_on(&self, today: Date) -> State {
        let start = self.products.iter().filter_map(Product::first_day).min();
        let over = match self.products.iter().filter_map(Product::end).max() {
            Some(end) => today >= end,
            None => self.before_cancel.is_some(),
        };
        match (self.before_cancel.is_some(), over) {
            (true, true) => State::Cancelled,
            (true, false) => State::Cancelling,
            (false, true) => State::Completed,
            (false, false) if start.is_some_and(|start| today < start) => State::Pending,
            (false, false) => State::Active,
        }
    }

    /// Returns the contract's state, or `None` if its entities have different states.
    pub(crate) fn state(&self, now: Timestamp) -> Option<State> {
        let mut states = self.todays(now).into_iter().map(|day| self.state_on(day));
        let first = states.next()?;
        states.all(|state| state == first).then_some(first)
    }

    /// Returns the products that a charge can belong to.
    pub(crate) fn charged_products(&self, pricing: Option<usize>, day: Date) -> Vec<u16> {
        let bills = |product: &&Product| {
            product.period_at(day).is_some_and(|period| pricing.is_none_or(|pricing| period.terms.pricing == pricing))
        };
        self.products.iter().filter(bills).map(|product| product.no).collect()
    }

    /// Returns the net amount of a product's service period with the given charges in full (billing rules 9). The given charges
    /// replace the present ones.
    fn net_in_full(&self, product: u16, start: Date, charges: &[Charge]) -> i64 {
        let period = self.product(product).period_at(start).expect("a period").clone();
        let of_charge = |item: &Option<String>| self.charges.iter().any(|charge| item.as_ref() == Some(&charge.id));
        let parts = self.parts();
        let own = parts.iter().filter(|part| part.product == product && part.start == start && !of_charge(&part.item));
        let mut discountable: i64 = own.map(|part| part.minor).sum();
        let mut fixed = 0;
        for charge in charges.iter().filter(|charge| !charge.deleted && charge.product == product && period.contains(charge.day))
        {
            let minor = rating::charge(charge.price, charge.quantity, charge.currency);
            if charge.discountable { discountable += minor } else { fixed += minor }
        }
        rating::net(discountable, fixed, period.terms.discount.unwrap_or(0))
    }

    /// Returns whether a new or changed charge makes the charges credit more than a product bills without them. This is checked
    /// in the old and the new period of the charge. An excess that does not grow is ignored.
    pub(crate) fn takes_too_much(&self, before: Option<&Charge>, after: &Charge) -> bool {
        let mut charges = self.charges.clone();
        match charges.iter_mut().find(|charge| charge.id == after.id) {
            Some(charge) => *charge = after.clone(),
            None => charges.push(after.clone()),
        }
        before.into_iter().chain([after]).any(|charge| {
            let Some(period) = self.product(charge.product).period_at(charge.day) else { return false };
            let (was, is) = (
                self.net_in_full(charge.product, period.start, &self.charges),
                self.net_in_full(charge.product, period.start, &charges),
            );
            is < 0 && is < was
        })
    }

    /// Returns whether any amount is so large that amounts can exceed the limit.
    pub(crate) fn is_large(&self) -> bool {
        self.parts().iter().any(|part| part.minor.abs() > 1_000_000_000)
    }

    /// Returns whether the next state has a line, the lines of a product in a service period, or agreed quantities of a whole
    /// period, above the limit of documents and above the present amount (billing rules 6).
    pub(crate) fn makes_too_large(&self, next: &Self) -> bool {
        /// The key of a product's lines in a service period, or of one of these lines.
        type Sum = (u16, Date, Option<(Option<String>, With)>);
        const MOST: i128 = 1_000_000_000_000_000;
        let agreed = |model: &Self, no: u16| {
            let product = model.products.iter().find(|product| product.no == no);
            product.map_or(0, |product| product.plan().map(|it| it.terms.most_agreed()).max().unwrap_or(0))
        };
        let is_too_large = |now: i128, was: i128| now > MOST && now > was;
        if next.products.iter().any(|product| is_too_large(agreed(next, product.no), agreed(self, product.no))) {
            return true;
        }
        let sums = |model: &Self| {
            let mut lines: BTreeMap<Sum, i128> = BTreeMap::new();
            for part in model.parts() {
                *lines.entry((part.product, part.start, None)).or_insert(0) += i128::from(part.minor);
                *lines.entry((part.product, part.start, Some((part.item, part.with)))).or_insert(0) += i128::from(part.minor);
            }
            lines
        };
        let (before, after) = (sums(self), sums(next));
        after.iter().any(|(key, sum)| is_too_large(sum.abs(), before.get(key).map_or(0, |sum| sum.abs())))
    }

    /// Returns whether the discount applies to a line item.
    pub(crate) fn is_discountable(&self, item: Option<&str>) -> bool {
        self.charges.iter().find(|charge| item == Some(&charge.id)).is_none_or(|charge| charge.discountable)
    }

    /// Returns the default tax in force on a day.
    pub(crate) fn default_tax(taxes: &TaxSpecs, day: Date) -> TaxSpec {
        let in_force = taxes.iter().rfind(|(from, _)| from.is_none_or(|from| from <= day));
        in_force.map(|(_, tax)| tax.clone()).unwrap_or_default()
    }

    /// Returns the tax of terms with the defaults of a day: a rate and an optional category (billing rules 7, 10).
    pub(crate) fn treatment(&self, terms: &Terms, day: Date) -> (Rate, Option<Category>) {
        let customer = Self::default_tax(&self.catalog.customer.taxes, day);
        let entity = Self::default_tax(&self.catalog.entities[terms.entity].taxes, day);
        let rate = terms.tax.or(customer.rate).unwrap_or(0);
        let category = if rate > 0 { Some("S") } else { terms.category.or(customer.category).or(entity.category) };
        (rate, category)
    }

    /// Adds a default tax from a day on (billing rules 7). Without a day, it applies from today, or from the beginning if none was
    /// ever set.
    pub(crate) fn with_tax(taxes: &TaxSpecs, tax: &TaxSpec, from: Option<Date>, today: Date) -> TaxSpecs {
        if taxes.is_empty() {
            return if *tax == TaxSpec::default() { Vec::new() } else { vec![(from, tax.clone())] };
        }
        let from = from.unwrap_or(today);
        let earlier = taxes.iter().filter(|(other, _)| other.is_none_or(|other| other < from));
        earlier.cloned().chain([(Some(from), tax.clone())]).collect()
    }

    /// Returns the day whose default tax applies to a line of a period that is issued on a day (billing rules 7). A charge above
    /// zero is a supply of its own day.
    pub(crate) fn taxed_on(&self, item: Option<&str>, period: &Period, issued: Date) -> Date {
        let is_supply =
            |charge: &&Charge| item == Some(&charge.id) && charge.price > 0 && !charge.deleted && period.contains(charge.day);
        let supplied = self.charges.iter().find(is_supply).map_or(plus(period.end, -1), |charge| charge.day);
        issued.min(supplied)
    }

    /// Returns whether an entity's documents may lack required information. Such documents wait.
    pub(crate) fn may_lack(&self, entity: usize) -> bool {
        self.catalog.entities[entity].strict || self.catalog.entities[entity].lacks_rate
    }
}
