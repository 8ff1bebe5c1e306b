//! Everything there is, for `verify`.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::refs::{ContractKey, ContractRef, OrganizationId};
use crate::usage::{UsageKey, UsageTotal};
use crate::verification::RecordedVerification;

/// What `verify` looks at: everything there is, told as it is.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait IntegrityQueries {
    /// Every organization.
    fn all_organizations(&mut self) -> StoreResult<Vec<OrganizationId>>;
    /// An organization's contracts by reference, after one, at most `limit`, each with the instant its newest version was made.
    fn contracts_after(
        &mut self,
        organization: OrganizationId,
        after: Option<ContractRef>,
        limit: u32,
    ) -> StoreResult<Vec<(ContractKey, Timestamp)>>;
    /// The same totals counted again from the events that aren't deleted; only those with an event.
    fn recount_contract(&mut self, key: ContractKey) -> StoreResult<Vec<(UsageKey, UsageTotal)>>;
    /// Every series of document numbers that isn't 1…n, and every number that several documents have, in a sentence each.
    fn broken_series(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Every issued document whose content doesn't have its hash, or whose hash isn't chained to the one before,
    /// in a sentence each.
    fn broken_seals(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Every file of a document whose bytes don't have its hash, in a sentence each.
    fn broken_files(&mut self, organization: OrganizationId) -> StoreResult<Vec<String>>;
    /// Keeps what a verification of an organization found, in the place of the one before.
    fn put_verification(&mut self, organization: OrganizationId, verification: &RecordedVerification) -> StoreResult<()>;
    /// The last one that was kept.
    fn last_verification(&mut self, organization: OrganizationId) -> StoreResult<Option<RecordedVerification>>;
}
