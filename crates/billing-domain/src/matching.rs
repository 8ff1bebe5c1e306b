//! Which contract product an event lands on: event + candidates → match or typed refusal (billing rules 4).
//! It opens no document; that is [`document::linking`](crate::document::linking).

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ProductPeriod};
use crate::party::Entity;
use crate::refs::{ContractRef, EntityRef, ProductNo, UsageProductRef};
use crate::refusal::MatchRefusal;
use crate::usage::Validations;

/// What matching needs to know of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// What was used.
    pub usage_product_ref: &'a UsageProductRef,
    /// When it was used.
    pub occurred_at: Timestamp,
    /// Checks given with it.
    pub validations: Option<&'a Validations>,
}

/// Where an event lands.
#[derive(Clone, Copy, Debug)]
pub struct Match<'c> {
    /// The contract.
    pub contract: &'c Contract,
    /// The event's service date: in the zone of the entity that bills, as it is now.
    pub service_date: NaiveDate,
    /// The product's period that date lies in.
    pub period: ProductPeriod<'c>,
    /// The entity that bills.
    pub entity: &'c Entity,
}

/// Picks the contract product an event lands on. The same facts give the same answer, always.
///
/// `contracts` are the customer's, `entities` those that bill them.
///
/// # Errors
/// [`MatchRefusal`] when no product covers the event, or its validations aren't met.
pub fn match_event<'c>(
    event: EventFacts<'_>,
    contracts: &'c [Contract],
    entities: &'c [Entity],
) -> Result<Match<'c>, MatchRefusal> {
    let mut candidates: Vec<Match<'c>> = contracts.iter().flat_map(|contract| candidates(event, contract, entities)).collect();
    candidates.sort_by_key(rank);
    let best = candidates.first().ok_or(MatchRefusal::NoMatchingContract)?;
    let Some(validations) = event.validations else { return Ok(*best) };
    match candidates.iter().find(|candidate| check_validations(validations, candidate.period.terms).is_ok()) {
        Some(candidate) => Ok(*candidate),
        None => check_validations(validations, best.period.terms).map(|()| *best),
    }
}

/// Picks the contract product of an event whose timestamp changed: the one it is of, as long as that meters it on the new date
/// and its validations are met there, else as [`match_event`] (billing rules 5).
///
/// # Errors
/// As [`match_event`].
pub fn match_moved_event<'c>(
    event: EventFacts<'_>,
    present: (ContractRef, ProductNo),
    contracts: &'c [Contract],
    entities: &'c [Entity],
) -> Result<Match<'c>, MatchRefusal> {
    let (contract_ref, product_no) = present;
    let own = contracts.iter().filter(|contract| contract.contract_ref == contract_ref);
    let stays = own.flat_map(|contract| candidates(event, contract, entities)).find(|candidate| {
        let is_met = |validations| check_validations(validations, candidate.period.terms).is_ok();
        candidate.period.product_no == product_no && event.validations.is_none_or(is_met)
    });
    stays.map_or_else(|| match_event(event, contracts, entities), Ok)
}

/// The latest billing start first, then the oldest contract, then the product's place in the list.
fn rank(candidate: &Match<'_>) -> impl Ord + use<> {
    let start: NaiveDate = candidate.period.terms.schedule.range().start();
    let contract = candidate.contract;
    (std::cmp::Reverse(start), contract.created_at, contract.contract_ref, candidate.period.product_no)
}

fn candidates<'c>(event: EventFacts<'_>, contract: &'c Contract, entities: &'c [Entity]) -> Vec<Match<'c>> {
    let find = |entity_ref: &EntityRef| entities.iter().find(|entity| entity.entity_ref == *entity_ref);
    let per_product = contract.products.iter().filter_map(|product| {
        // The service date depends on the entity, which depends on the terms in force on that date: try each.
        product.terms().filter_map(|terms| find(&terms.entity_ref)).find_map(|entity| {
            let date = entity.profile.time_zone.service_date(event.occurred_at);
            let period = product.period_at(date)?;
            let fits = period.terms.entity_ref == entity.entity_ref && period.terms.meters(event.usage_product_ref);
            fits.then_some(Match { contract, service_date: date, period, entity })
        })
    });
    per_product.collect()
}

/// Whether a document of these terms satisfies an event's validations.
///
/// # Errors
/// The first check that fails, with what was expected and what is.
pub fn check_validations(validations: &Validations, terms: &ProductTerms) -> Result<(), MatchRefusal> {
    if let Some(expected) = validations.currency
        && expected != terms.pricing.currency
    {
        return Err(MatchRefusal::CurrencyMismatch { expected, actual: terms.pricing.currency });
    }
    if let Some(expected) = &validations.entity_ref
        && *expected != terms.entity_ref
    {
        return Err(MatchRefusal::EntityMismatch { expected: expected.clone(), actual: terms.entity_ref.clone() });
    }
    Ok(())
}
