//! A naive model of billing, written from the rules alone: it keeps raw events and the terms agreed on, and
//! computes everything anew whenever it is asked. It knows no document.

pub(crate) mod calendar;
pub(crate) mod contract;
pub(crate) mod rating;
mod usage;

use billing_domain::calendar::Timestamp;
use billing_domain::document::linking::Slot;
use billing_domain::party::NetTerms;

use self::calendar::{Date, midnight, service_date};
use self::contract::{Product, ProductPatch, Terms, Wanted, usage_of};
use crate::spec::{Catalog, ChargeSpec, ItemSpec};
pub(crate) use usage::{Event, Place};

/// A contract's products, cancelled ones included.
#[derive(Clone, Debug)]
pub(crate) struct Contract {
    pub(crate) customer: usize,
    pub(crate) created_at: Timestamp,
    pub(crate) products: Vec<Product>,
    pub(crate) cancelled_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum State {
    Pending,
    Active,
    Cancelling,
    Cancelled,
    Completed,
}

/// What an amount is for: contract, product, first day of the service period, line item.
pub(crate) type Key = (usize, u16, Date, Option<String>);

/// A part of a line, and the document that has to carry it.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) key: Key,
    /// The first day of the document's own period, and which of its documents.
    pub(crate) own: Date,
    pub(crate) slot: Slot,
    pub(crate) minor: i64,
}

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) catalog: Catalog,
    pub(crate) contracts: Vec<Contract>,
    pub(crate) events: Vec<Event>,
}

impl Model {
    pub(crate) const fn new(catalog: Catalog) -> Self {
        Self { catalog, contracts: Vec::new(), events: Vec::new() }
    }

    pub(crate) fn zone(&self, entity: usize) -> &'static str {
        self.catalog.entities[entity].zone
    }

    pub(crate) fn today(&self, terms: &Terms, now: Timestamp) -> Date {
        service_date(self.zone(terms.entity), now)
    }

    /// Net terms of the product, its customer, its entity.
    pub(crate) fn net_terms(&self, customer: usize, terms: &Terms) -> NetTerms {
        let (customer, entity) = (&self.catalog.customers[customer], &self.catalog.entities[terms.entity]);
        terms.wanted.net_terms.or(customer.net_terms).or(entity.net_terms).unwrap_or(NetTerms::DueUponReceipt)
    }

    /// Tax and discount.
    pub(crate) fn rates(&self, customer: usize, terms: &Terms) -> (u32, u32) {
        (terms.wanted.tax.or(self.catalog.customers[customer].tax).unwrap_or(0), terms.wanted.discount.unwrap_or(0))
    }

    fn agree(&self, customer: usize, wanted: Wanted) -> Option<Terms> {
        let entity = wanted.entity.or(self.catalog.customers[customer].entity).unwrap_or(0);
        let pricing = &self.catalog.pricings[wanted.pricing];
        Terms::agree(wanted, pricing, entity, &self.catalog)
    }

    fn agree_all(&self, customer: usize, wanted: Vec<Wanted>) -> Option<Vec<Terms>> {
        let terms: Vec<Terms> = wanted.into_iter().map(|wanted| self.agree(customer, wanted)).collect::<Option<_>>()?;
        let twice = terms.iter().enumerate().any(|(i, a)| {
            terms[..i].iter().any(|b| {
                let (a, b) = (&a.wanted, &b.wanted);
                a.pricing == b.pricing && a.start < b.end && b.start < a.end
            })
        });
        (!twice).then_some(terms)
    }

    /// A new contract; `None` when it can't be taken.
    pub(crate) fn created(&self, customer: usize, wanted: Vec<Wanted>, now: Timestamp) -> Option<Contract> {
        let terms = self.agree_all(customer, wanted)?;
        let products = terms.into_iter().zip(0..).map(|(terms, no)| Product::new(no, terms)).collect();
        Some(Contract { customer, created_at: now, products, cancelled_at: None })
    }

    pub(crate) fn state(&self, contract: &Contract, now: Timestamp) -> State {
        let today = self.today(contract.products[0].newest_terms(), now);
        let start = contract.products.iter().filter_map(Product::first_day).min();
        let over = match contract.products.iter().filter_map(Product::end).max() {
            // One that was cancelled at once is over on the day itself.
            Some(end) => {
                let zone = self.zone(contract.products[0].newest_terms().entity);
                let at_once = contract.cancelled_at.is_some_and(|at| calendar::plus(end, -1) <= service_date(zone, at));
                today >= end || at_once
            }
            None => contract.cancelled_at.is_some(),
        };
        match (contract.cancelled_at.is_some(), over) {
            (true, true) => State::Cancelled,
            (true, false) => State::Cancelling,
            (false, true) => State::Completed,
            (false, false) if start.is_some_and(|start| today < start) => State::Pending,
            (false, false) => State::Active,
        }
    }

    /// The contract after an edit; `None` when it can't be taken.
    pub(crate) fn edited(
        &self,
        index: usize,
        patches: Option<&[ProductPatch]>,
        current: bool,
        now: Timestamp,
    ) -> Option<Contract> {
        let contract = &self.contracts[index];
        if !matches!(self.state(contract, now), State::Pending | State::Active) {
            return None;
        }
        let mut next = contract.clone();
        let Some(patches) = patches else { return Some(next) };
        let (nos, wanted): (Vec<_>, Vec<_>) = matched(contract, patches)?.into_iter().unzip();
        let agreed = self.agree_all(contract.customer, wanted)?;
        for product in &mut next.products {
            if !product.is_removed && !nos.contains(&Some(product.no)) {
                product.is_removed = true;
                let today = self.today(product.newest_terms(), now);
                if let Some(from) = product.end_of_life(today, current) {
                    product.end_from(from);
                }
            }
        }
        for (no, terms) in nos.into_iter().zip(agreed) {
            match no.and_then(|no| next.products.iter_mut().find(|product| product.no == no)) {
                Some(product) => {
                    let today = self.today(product.newest_terms(), now);
                    let from = product.change_from(terms.wanted.start, today, current);
                    // The same terms again change something only where they are to hold earlier.
                    let holds_then = product.segments.last().is_some_and(|segment| segment.from <= from);
                    if !(holds_then && *product.newest_terms() == terms) {
                        product.segments.push(contract::Segment { from, terms: Some(terms) });
                        product.count_periods();
                    }
                }
                None => {
                    let no = next.products.iter().map(|product| product.no + 1).max().unwrap_or(0);
                    next.products.push(Product::new(no, terms));
                }
            }
        }
        self.keeps_usage(index, &next).then_some(next)
    }

    /// The contract after a cancel; `None` when it can't be cancelled.
    pub(crate) fn cancelled(&self, index: usize, current: bool, now: Timestamp) -> Option<Contract> {
        let contract = &self.contracts[index];
        match self.state(contract, now) {
            State::Pending | State::Active => {}
            State::Cancelling if current => {}
            State::Cancelling | State::Cancelled | State::Completed => return None,
        }
        let mut next = Contract { cancelled_at: Some(now), ..contract.clone() };
        for product in &mut next.products {
            let today = self.today(product.newest_terms(), now);
            if let Some(from) = product.end_of_life(today, current) {
                product.end_from(from);
            }
        }
        self.keeps_usage(index, &next).then_some(next)
    }

    /// Whether every event still has its period, a line item, and the same way to its documents.
    fn keeps_usage(&self, index: usize, next: &Contract) -> bool {
        let present = &self.contracts[index];
        let live = self.events.iter().filter(|event| !event.deleted && event.place.contract == index);
        live.into_iter().all(|event| {
            let of = |contract: &Contract| contract.products.iter().find(|product| product.no == event.place.product).cloned();
            let (before, after) = (of(present).expect("the event's product"), of(next).expect("products are kept"));
            if before.segments.len() == after.segments.len() {
                return true;
            }
            let Some(period) = after.period_at(event.place.start) else { return false };
            let (old, new) = (before.period_at(event.place.start).expect("the event's period"), period);
            let (old, new) = (before.terms_of(old), after.terms_of(new));
            let day = service_date(self.zone(new.entity), event.at);
            let upon_usage = |terms: &Terms| self.net_terms(present.customer, terms) == NetTerms::DueUponUsage;
            period.start == event.place.start
                && period.contains(day)
                && new.meters(event.usage)
                && new.payment_time == old.payment_time
                && new.entity == old.entity
                && new.currency == old.currency
                && upon_usage(new) == upon_usage(old)
        })
    }

    /// When a document is due to be issued.
    pub(crate) fn due_at(&self, product: &Product, index: usize, slot: Slot) -> Timestamp {
        let entity = product.terms_of(&product.periods[index]).entity;
        let day = midnight(self.zone(entity), product.issue_day(index, slot));
        day.plus_seconds(i64::from(self.catalog.entities[entity].grace_hours) * 3600)
    }

    /// Q of a usage product in a period, in thousandths, and the number of events.
    fn q(&self, place: Place, usage: usize, aggregation: billing_domain::catalog::Aggregation) -> (i128, i128) {
        use billing_domain::catalog::Aggregation;
        let here: Vec<(usize, &Event)> = self
            .events
            .iter()
            .enumerate()
            .filter(|(_, event)| !event.deleted && event.place == place && event.usage == usage)
            .collect();
        let quantity = |event: &Event| i128::from(event.quantity);
        let q = match aggregation {
            Aggregation::Sum => here.iter().map(|(_, event)| quantity(event)).sum(),
            Aggregation::Count => here.len() as i128 * 1_000,
            Aggregation::Max => here.iter().map(|(_, event)| quantity(event)).max().unwrap_or(0),
            Aggregation::Latest => here.iter().max_by_key(|(i, event)| (event.at, *i)).map_or(0, |(_, event)| quantity(event)),
        };
        (q, here.len() as i128)
    }

    /// A(Q) of a usage line item in a period.
    pub(crate) fn usage_amount(
        &self,
        place: Place,
        terms: &Terms,
        item: &ItemSpec,
        share: (i64, i64),
        with_minimum: bool,
    ) -> i64 {
        let Some(usage) = usage_of(item) else { return 0 };
        let (q, events) = self.q(place, usage.usage, terms.aggregations[usage.usage]);
        let q = q.max(i128::from(usage.prepaid.unwrap_or(0)));
        rating::amount(usage, q, events, with_minimum, share, terms.currency)
    }

    /// Everything that a product costs, with the document each part belongs on.
    pub(crate) fn parts(&self, contract: usize, product: &Product) -> Vec<Part> {
        let mut parts = Vec::new();
        for (index, period) in product.periods.iter().enumerate() {
            let (terms, share) = (product.terms_of(period), period.share());
            let place = Place { contract, product: product.no, start: period.start };
            let (usage_index, usage_slot) = product.usage_slot(index);
            let usage_own = product.periods[usage_index].start;
            let mut part = |id: Option<&str>, own, slot, minor| {
                parts.push(Part { key: (contract, product.no, period.start, id.map(str::to_owned)), own, slot, minor });
            };
            let mut sum = 0;
            for item in &terms.items {
                match &item.charge {
                    ChargeSpec::Flat { amount, once } => {
                        let minor = match (once, period.is_first) {
                            (false, _) => rating::price(*amount, share, terms.currency),
                            (true, true) => rating::price(*amount, (1, 1), terms.currency),
                            (true, false) => continue,
                        };
                        sum += minor;
                        part(Some(item.id), period.start, Slot::Period, minor);
                    }
                    ChargeSpec::Usage(usage) => {
                        let minor = self.usage_amount(place, terms, item, share, true);
                        sum += minor;
                        let in_advance =
                            usage.prepaid.map_or(0, |p| rating::amount(usage, i128::from(p), 0, true, share, terms.currency));
                        if usage.prepaid.is_some() {
                            part(Some(item.id), period.start, Slot::Period, in_advance);
                        }
                        part(Some(item.id), usage_own, usage_slot, minor - in_advance);
                    }
                }
            }
            if let Some(fee) = terms.minimum_fee {
                let missing = (rating::price(fee, share, terms.currency) - sum).max(0);
                part(None, usage_own, usage_slot, missing);
            }
        }
        parts
    }
}

/// Which present product each element of an edit's list goes on from; `None` when that can't be told.
fn matched(contract: &Contract, patches: &[ProductPatch]) -> Option<Vec<(Option<u16>, Wanted)>> {
    let mut taken = Vec::new();
    let mut matched = Vec::new();
    for patch in patches {
        let same: Vec<&Product> = contract
            .products
            .iter()
            .filter(|product| !product.is_removed && !taken.contains(&product.no))
            .filter(|product| product.newest_terms().wanted.pricing == patch.pricing)
            .collect();
        let present = match same.as_slice() {
            [] => None,
            [only] => Some(*only),
            several => {
                let named = several.iter().find(|product| Some(product.newest_terms().wanted.start) == patch.start)?;
                Some(*named)
            }
        };
        match present {
            Some(product) => {
                taken.push(product.no);
                matched.push((Some(product.no), patch.onto(product.newest_terms().wanted.clone())));
            }
            None => {
                let nothing = Wanted {
                    pricing: patch.pricing,
                    start: patch.start?,
                    end: patch.end?,
                    items: None,
                    entity: None,
                    cycle: None,
                    issue_day: None,
                    payment_time: None,
                    tax: None,
                    discount: None,
                    net_terms: None,
                    note: None,
                };
                matched.push((None, patch.onto(nothing)));
            }
        }
    }
    Some(matched)
}
