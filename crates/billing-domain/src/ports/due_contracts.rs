//! The contracts that have a document to issue, and since when. The billing run reads them.

use std::collections::BTreeMap;

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::refs::{ContractKey, EntityRef, OrganizationId};

/// A contract with a document to issue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DueContract {
    /// The contract.
    pub key: ContractKey,
    /// The time since which the document is due to be issued.
    pub due_at: Timestamp,
}

/// Storage of the next time at which each contract has a document to issue.
pub trait DueContracts {
    /// Returns at most `limit` contracts with a document to issue at an instant. The longest due come first, then the
    /// order is by reference.
    ///
    /// The result starts after the last contract of the previous page. It covers one organization or all.
    fn contracts_due(
        &mut self,
        organization: Option<OrganizationId>,
        now: Timestamp,
        after: Option<DueContract>,
        limit: u32,
    ) -> StoreResult<Vec<DueContract>>;
    /// Returns the number of contracts of all organizations with a document to issue at an instant.
    fn count_contracts_due(&mut self, now: Timestamp) -> StoreResult<u64>;
    /// Advances the next due instant of all contracts that name an entity in any version to `at`. An earlier instant
    /// stays. Locks these contracts [`Lock::Exclusive`](super::Lock::Exclusive).
    ///
    /// The call may advance other contracts, too: checking a contract that has nothing to issue changes nothing.
    fn advance_due_instants(&mut self, organization: OrganizationId, entity_ref: &EntityRef, at: Timestamp) -> StoreResult<()>;
    /// Sets the next due instant of contracts, or `None` when a contract never has a document to issue again.
    fn set_next_dues(&mut self, due: &BTreeMap<ContractKey, Option<Timestamp>>) -> StoreResult<()>;
}
