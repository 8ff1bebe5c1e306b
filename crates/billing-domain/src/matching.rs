//! Matching of events to contract products: an event and candidates give a match or a typed refusal (billing rules 4).
//!
//! Matching opens no document. [`document::linking`](crate::document::linking) does that.

use std::borrow::Borrow;

use chrono::NaiveDate;

use crate::calendar::Timestamp;
use crate::contract::selection::Uncounted;
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ProductPeriod};
use crate::document::usage_totals::usage_key;
use crate::labels::LabelDigest;
use crate::party::Entity;
use crate::refs::{ContractRef, EntityRef, LineItemId, ProductNo, UsageProductRef};
use crate::refusal::MatchRefusal;
use crate::usage::{ReportData, UsageKey, Validations};

/// The facts about an event that matching needs.
#[derive(Clone, Copy, Debug)]
pub struct EventFacts<'a> {
    /// The usage product.
    pub usage_product_ref: &'a UsageProductRef,
    /// The time of the usage.
    pub occurred_at: Timestamp,
    /// The labels of the event.
    pub labels: Option<&'a ReportData>,
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
    /// The line item that counts the event; `None` if all line items of the usage product count it.
    pub line_item_id: Option<&'c LineItemId>,
    /// The digest of the label whose distinct texts line items of the usage product count (`UNIQUE`).
    pub unique_digest: Option<LabelDigest>,
}

impl Match<'_> {
    /// Returns the key of the running total that counts the event.
    pub fn usage_key(&self, usage_product_ref: &UsageProductRef) -> UsageKey {
        usage_key(self.contract.contract_ref, &self.period, usage_product_ref).of_line_item(self.line_item_id)
    }
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
    entities: &'c [impl Borrow<Entity>],
) -> Result<Match<'c>, MatchRefusal> {
    select(event, None, candidates(event, None, contracts, entities)?)
}

/// Selects the contract product of an event whose timestamp, labels or validations changed. The product that the event was first
/// matched to comes first among the products with `where`, and among those without. So an event that is moved away and back
/// costs what it cost before (billing rules 5).
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
    entities: &'c [impl Borrow<Entity>],
) -> Result<Match<'c>, MatchRefusal> {
    select(event, Some(first), candidates(event, service_date, contracts, entities)?)
}

/// Selects the best candidate that meets the validations. `first` is the product of an earlier match.
fn select<'c>(
    event: EventFacts<'_>,
    first: Option<(ContractRef, ProductNo)>,
    mut candidates: Vec<Match<'c>>,
) -> Result<Match<'c>, MatchRefusal> {
    candidates.sort_by_key(|candidate| rank(candidate, first));
    let best = candidates.first().ok_or(MatchRefusal::NoMatchingContract)?;
    let Some(validations) = event.validations else { return Ok(*best) };
    match candidates.iter().find(|candidate| check_validations(validations, candidate.period.terms).is_ok()) {
        Some(candidate) => Ok(*candidate),
        None => check_validations(validations, best.period.terms).map(|()| *best),
    }
}

/// Ranks candidates: those with `where` first, then the product of an earlier match, then the latest billing start, then the
/// oldest contract, then the position of the product in its contract.
fn rank(candidate: &Match<'_>, first: Option<(ContractRef, ProductNo)>) -> impl Ord + use<> {
    let (contract, terms) = (candidate.contract, candidate.period.terms);
    let start: NaiveDate = terms.schedule.range().start();
    let is_first = first == Some((contract.contract_ref, candidate.period.product_no));
    let by_age = (contract.created_at, contract.contract_ref, candidate.period.product_no);
    (terms.condition.is_none(), !is_first, std::cmp::Reverse(start), by_age)
}

/// Returns the products whose terms count an event on its service date.
///
/// # Errors
/// Returns [`MatchRefusal::NoMatchingLine`] if products meter the usage product on that date, but none of them counts the event.
fn candidates<'c>(
    event: EventFacts<'_>,
    service_date: Option<NaiveDate>,
    contracts: impl IntoIterator<Item = &'c Contract>,
    entities: &'c [impl Borrow<Entity>],
) -> Result<Vec<Match<'c>>, MatchRefusal> {
    let find =
        |entity_ref: &EntityRef| entities.iter().map(Borrow::borrow).find(|entity: &&Entity| entity.entity_ref == *entity_ref);
    let (mut found, mut unpriced) = (Vec::new(), None);
    for contract in contracts {
        for product in &contract.products {
            // The service date depends on the entity, and the entity depends on the terms in force on that date. So each entity is
            // tried.
            for entity in product.terms().filter_map(|terms| find(&terms.entity_ref)) {
                let date = service_date.unwrap_or_else(|| entity.profile.time_zone.service_date(event.occurred_at));
                let period = product.period_at(date).filter(|period| period.terms.entity_ref == entity.entity_ref);
                let Some(period) = period else { continue };
                let selected = period.terms.select(event.usage_product_ref, event.labels).and_then(|line_item_id| {
                    Ok((line_item_id, period.terms.unique_digest(event.usage_product_ref, event.labels)?))
                });
                match selected {
                    Ok((line_item_id, unique_digest)) => {
                        found.push(Match { contract, service_date: date, period, entity, line_item_id, unique_digest });
                        break;
                    }
                    Err(Uncounted::UnpricedLabel(label)) => unpriced = unpriced.or(Some(label)),
                    Err(Uncounted::NotMetered) => {}
                }
            }
        }
    }
    match unpriced.filter(|_| found.is_empty()) {
        Some(label) => Err(MatchRefusal::NoMatchingLine(label)),
        None => Ok(found),
    }
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
