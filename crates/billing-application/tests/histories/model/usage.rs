//! Where usage counts (billing rules 4).

use billing_domain::calendar::Timestamp;

use super::calendar::{Date, service_date};
use super::contract::{Product, Terms};
use super::{Contract, Model};
use crate::spec::ChecksSpec;

/// One service period of one contract product.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) contract: usize,
    pub(crate) product: u16,
    pub(crate) start: Date,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) customer: usize,
    pub(crate) usage: usize,
    pub(crate) at: Timestamp,
    pub(crate) quantity: u32,
    pub(crate) checks: Option<ChecksSpec>,
    pub(crate) data: Option<u8>,
    pub(crate) place: Place,
    pub(crate) deleted: bool,
}

/// A place an event may land on.
struct Candidate<'m> {
    place: Place,
    terms: &'m Terms,
    created_at: Timestamp,
}

impl Model {
    /// Where an event lands; `None` when nowhere.
    pub(crate) fn place(&self, customer: usize, usage: usize, at: Timestamp, checks: Option<ChecksSpec>) -> Option<Place> {
        let of_customer = self.contracts.iter().enumerate().filter(|(_, contract)| contract.customer == customer);
        let mut candidates: Vec<Candidate<'_>> =
            of_customer.flat_map(|(i, contract)| self.candidates(i, contract, usage, at)).collect();
        // The latest start, then the oldest contract, then the first product.
        candidates.sort_by_key(|candidate| {
            let place = candidate.place;
            (std::cmp::Reverse(candidate.terms.wanted.start), candidate.created_at, place.contract, place.product)
        });
        candidates.into_iter().find(|candidate| satisfies(checks, candidate.terms)).map(|candidate| candidate.place)
    }

    fn candidates<'m>(&self, index: usize, contract: &'m Contract, usage: usize, at: Timestamp) -> Vec<Candidate<'m>> {
        let on_product = |product: &'m Product| {
            // Which day it is depends on the entity, and the entity on the day: the oldest terms that fit.
            let versions = product.segments.iter().filter_map(|segment| segment.terms.as_ref());
            versions.into_iter().find_map(|version| {
                let day = service_date(self.zone(version.entity), at);
                let period = product.period_at(day)?;
                let terms = product.terms_of(period);
                let fits = terms.entity == version.entity && terms.meters(usage);
                let place = Place { contract: index, product: product.no, start: period.start };
                fits.then_some(Candidate { place, terms, created_at: contract.created_at })
            })
        };
        contract.products.iter().filter_map(on_product).collect()
    }

    /// Whether an event's checks are met where it counts.
    pub(crate) fn checks_hold(&self, event: &Event) -> bool {
        let products = &self.contracts[event.place.contract].products;
        let product = products.iter().find(|product| product.no == event.place.product).expect("the event's product");
        let period = product.period_at(event.place.start).expect("the event's period");
        satisfies(event.checks, product.terms_of(period))
    }
}

fn satisfies(checks: Option<ChecksSpec>, terms: &Terms) -> bool {
    checks.is_none_or(|checks| {
        checks.currency.is_none_or(|currency| currency == terms.currency)
            && checks.entity.is_none_or(|entity| entity == terms.entity)
    })
}
