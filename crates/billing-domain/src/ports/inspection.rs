//! Read access to all data, for `verify` and for the check of the clock.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::contract::Contract;
use crate::ledger::overdue::VersionTimes;
use crate::ledger::recount::Recount;
use crate::refs::{ContractKey, ContractRef, OrganizationId};
use crate::verification::RecordedVerification;

/// Queries over all organizations, or of `verify`. They return stored data unchecked.
pub trait IntegrityQueries {
    /// Returns every organization.
    fn all_organizations(&mut self) -> StoreResult<Vec<OrganizationId>>;
    /// Returns the latest instant at which a server recorded something, of the newest usage event, the newest entry of the
    /// audit log and the latest billing run. Returns `None` if none of them exists.
    fn latest_recorded_instant(&mut self) -> StoreResult<Option<Timestamp>>;
    /// Returns at most `limit` contracts of an organization after a given contract, ordered by reference.
    fn contracts_after(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<ContractKey>>;
    /// Returns the creation time of each version of a contract.
    fn version_times(&mut self, key: ContractKey) -> StoreResult<VersionTimes>;
    /// Recounts the running totals of a contract by its terms, from the events that are not deleted.
    fn recount_contract(&mut self, organization: OrganizationId, contract: &Contract) -> StoreResult<Recount>;
    /// Returns the number of a contract's events, including deleted ones, whose document does not exist.
    fn events_without_document(&mut self, key: ContractKey) -> StoreResult<u64>;
    /// Returns one sentence for each series of document numbers that is not 1…n, and for each duplicate number.
    fn broken_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Returns one sentence for each issued document whose content does not match its hash, or whose hash is not chained
    /// to the previous document.
    fn broken_seals(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Returns one sentence for each document file whose bytes do not match its hash.
    fn broken_files(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Stores the result of the verification of an organization and replaces the previous result.
    fn put_verification(&mut self, organization: OrganizationId, verification: &RecordedVerification) -> StoreResult<()>;
    /// Returns the last stored verification.
    fn last_verification(&mut self, organization: OrganizationId) -> StoreResult<Option<RecordedVerification>>;
}
