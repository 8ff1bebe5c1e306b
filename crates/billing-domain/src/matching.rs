//! Matching of events to contract products: an event and candidates give a match or a typed refusal (billing rules 4).
//!
//! Matching opens no document. [`document::linking`](crate::document::linking) does that.

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ProductPeriod};
use crate::party::Entity;
use crate::refs::{ContractRef, EntityRef, ProductNo, UsageProductRef};
use crate::refusal::MatchRefusal;
use crate::usage::Validations;

/// The facts about an event that matching needs.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// The usage product.
    pub usage_product_ref: &'a UsageProductRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The checks of the event.
    pub validations: Option<&'a Validations>,
}

/// The contract product and period that an event matches.
#[derive(Clone, Copy, Debug)]
pub struct Match<'c> {
    /// The contract.
    pub contract: &'c Contract,
    /// The service date of the event in the current time zone of the entity that bills.
    pub service_date: NaiveDate,
    /// The product's period that contains the service date.
    pub period: ProductPeriod<'c>,
    /// The entity that bills.
    pub entity: &'c Entity,
}

/// Selects the contract product of an event. The result is deterministic.
///
/// `contracts` are the contracts of the customer. `entities` are the entities that bill these contracts.
///
/// # Errors
/// Returns a [`MatchRefusal`] if no product covers the event or its validations aren't met.
pub fn match_event<'c>(
    event: EventFacts<'_>,
    contracts: impl IntoIterator<Item = &'c Contract>,
    entities: &'c [Entity],
) -> Result<Match<'c>, MatchRefusal> {
    let candidates = contracts.into_iter().flat_map(|contract| candidates(event, None, contract, entities)).collect();
    select(event, candidates)
}

/// Selects the best candidate that meets the validations.
fn select<'c>(event: EventFacts<'_>, mut candidates: Vec<Match<'c>>) -> Result<Match<'c>, MatchRefusal> {
    candidates.sort_by_key(rank);
    let best = candidates.first().ok_or(MatchRefusal::NoMatchingContract)?;
    let Some(validations) = event.validations else { return Ok(*best) };
    match candidates.iter().find(|candidate| check_validations(validations, candidate.period.terms).is_ok()) {
        Some(candidate) => Ok(*candidate),
        None => check_validations(validations, best.period.terms).map(|()| *best),
    }
}

/// Selects the contract product of an event whose timestamp or validations changed. The product that the event was first matched to
/// is selected if it meters the event with its new facts and the validations are met. So an event that is moved away and back costs
/// what it cost before. Otherwise, all products are candidates as for a new event (billing rules 5).
///
/// `first` is the product of the first match. `service_date` is the recorded date if the timestamp is unchanged.
///
/// # Errors
/// Returns the errors of [`match_event`].
pub fn match_changed_event<'c>(
    event: EventFacts<'_>,
    first: (ContractRef, ProductNo),
    service_date: Option<NaiveDate>,
    contracts: &'c [Contract],
    entities: &'c [Entity],
) -> Result<Match<'c>, MatchRefusal> {
    let candidates: Vec<Match<'c>> =
        contracts.iter().flat_map(|contract| candidates(event, service_date, contract, entities)).collect();
    let again = candidates.iter().find(|candidate| {
        let is_met = |validations| check_validations(validations, candidate.period.terms).is_ok();
        (candidate.contract.contract_ref, candidate.period.product_no) == first && event.validations.is_none_or(is_met)
    });
    again.copied().map_or_else(|| select(event, candidates), Ok)
}

/// Ranks candidates: the latest billing start first, then the oldest contract, then the position of the product in its contract.
fn rank(candidate: &Match<'_>) -> impl Ord + use<> {
    let start: NaiveDate = candidate.period.terms.schedule.range().start();
    let contract = candidate.contract;
    (std::cmp::Reverse(start), contract.created_at, contract.contract_ref, candidate.period.product_no)
}

fn candidates<'c>(
    event: EventFacts<'_>,
    service_date: Option<NaiveDate>,
    contract: &'c Contract,
    entities: &'c [Entity],
) -> Vec<Match<'c>> {
    let find = |entity_ref: &EntityRef| entities.iter().find(|entity| entity.entity_ref == *entity_ref);
    let per_product = contract.products.iter().filter_map(|product| {
        // The service date depends on the entity, and the entity depends on the terms in force on that date. So each entity is tried.
        product.terms().filter_map(|terms| find(&terms.entity_ref)).find_map(|entity| {
            let date = service_date.unwrap_or_else(|| entity.profile.time_zone.service_date(event.occurred_at));
            let period = product.period_at(date)?;
            let fits = period.terms.entity_ref == entity.entity_ref && period.terms.meters(event.usage_product_ref);
            fits.then_some(Match { contract, service_date: date, period, entity })
        })
    });
    per_product.collect()
}

/// Checks whether a document with these terms satisfies the validations of an event.
///
/// # Errors
/// Returns the first mismatch with its expected and actual value.
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
