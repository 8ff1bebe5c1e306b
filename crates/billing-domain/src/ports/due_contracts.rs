//! Which contracts have something to issue, and since when: what the billing run goes by.

use std::collections::BTreeMap;

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::refs::{ContractKey, EntityRef, OrganizationId};

/// A contract with something to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueContract {
    /// The contract.
    pub key: ContractKey,
    /// Since when.
    pub due_at: Timestamp,
}

/// When contracts next have something to issue.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait DueContracts {
    /// Contracts with something to issue at an instant, longest due first, then by reference: at most `limit`,
    /// after the one a page ended with, of one organization or of all.
    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>>;
    /// Brings the instant at which contracts next have something to issue forward, of all of which any version names an
    /// entity, and holds them [`Lock::Exclusive`](super::Lock::Exclusive); an earlier instant stays. May bring forward others,
    /// too: looking at a contract in vain changes nothing.
    fn advance_due_instants(&mut self, organization: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()>;
    /// Sets when contracts next have something to issue; `None` when one never has again.
    fn set_next_dues(&mut self, due: &BTreeMap<ContractKey, Option<Timestamp>>) -> StoreResult<()>;
}
