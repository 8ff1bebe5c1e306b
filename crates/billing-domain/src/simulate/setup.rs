//! The initial data of a simulation.

use std::sync::Arc;

use chrono::NaiveDate;

use super::party::{CustomerChange, EntityChange, plain_entity};
use super::price::PriceList;
use super::terms::Terms;
use super::value::{Given, StepTime};
use crate::calendar::{TimeZone, Timestamp};
use crate::ledger::amend::BackdatingPolicy;
use crate::party::{Entity, MAX_PREFIX_CHARS};
use crate::refusal::Refusal;

/// The entity that every simulation has, and its number prefix.
const DEFAULT_ENTITY: (&str, &str) = ("default", "UB");
/// The initial data of a simulation.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) customer: Vec<CustomerChange>,
    pub(super) entities: Vec<EntityChange>,
    pub(super) pricings: Vec<PriceList>,
    pub(super) terms: Vec<Terms>,
    pub(super) created: Option<Given<StepTime>>,
    pub(super) backdated: BackdatingPolicy,
    pub(super) runs: bool,
}

impl Setup {
    /// Returns the initial time zone of the first entity.
    pub(super) fn zone(&self) -> Result<TimeZone, Refusal> {
        Ok(entities(self)?.first().map_or(TimeZone::UTC, |entity| entity.profile.time_zone))
    }

    /// Returns a step's instant.
    pub(super) fn instant(&self, time: &Given<StepTime>) -> Result<Timestamp, Refusal> {
        Ok(time.read("on")?.in_zone(self.zone()?))
    }
}

pub(super) fn entities(setup: &Setup) -> Result<Vec<Arc<Entity>>, Refusal> {
    let (reference, prefix) = DEFAULT_ENTITY;
    let mut entities = vec![Arc::new(plain_entity(Given::from(reference).read("entity_ref")?, prefix)?)];
    for change in &setup.entities {
        put_entity(&mut entities, change, NaiveDate::MIN)?;
    }
    Ok(entities)
}

/// Changes an entity, or adds it if it does not exist. The number prefix of a new entity consists of the letters and
/// digits of its reference.
pub(super) fn put_entity(entities: &mut Vec<Arc<Entity>>, change: &EntityChange, today: NaiveDate) -> Result<(), Refusal> {
    let entity_ref = change.reference()?;
    if let Some(entity) = entities.iter_mut().find(|entity| entity.entity_ref == entity_ref) {
        return change.apply(Arc::make_mut(entity), today);
    }
    let prefix = entity_ref.as_str().chars().filter(char::is_ascii_alphanumeric).take(MAX_PREFIX_CHARS).collect::<String>();
    let mut entity = plain_entity(entity_ref, &prefix.to_ascii_uppercase())?;
    change.apply(&mut entity, today)?;
    entities.push(Arc::new(entity));
    Ok(())
}

/// Returns the error for an unknown name.
pub(super) fn unknown(kind: &str, name: &str) -> Refusal {
    Refusal::field(&[kind], "unknown_reference", format!("must name a {kind} that is there, not {name:?}"))
}
