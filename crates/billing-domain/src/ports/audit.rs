//! The audit log.

use super::StoreResult;
use crate::access::RequestId;
use crate::audit::{AuditAction, AuditActor, AuditEntry, AuditPosition, AuditedKind};
use crate::calendar::Timestamp;
use crate::refs::OrganizationId;

/// What entries are narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// By whom.
    pub author: Option<AuditActor>,
    /// What was done.
    pub action: Option<AuditAction>,
    /// To what kind of thing.
    pub kind: Option<AuditedKind>,
    /// To the thing of this reference.
    pub reference: Option<String>,
    /// At this instant or later.
    pub from: Option<Timestamp>,
    /// Before this instant.
    pub to: Option<Timestamp>,
    /// By this request.
    pub request_id: Option<RequestId>,
    /// Leaves out what was done to API keys and administrators.
    pub without_access: bool,
}

/// Which part of the entries is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPart {
    /// What comes after this place; from the newest on when there is none.
    pub after: Option<AuditPosition>,
    /// Entries to leave out from there on. They cost what the entries cost that are read.
    pub skip: u64,
    /// Entries at most.
    pub limit: u32,
}

/// The audit log. What is written in it stays as it is.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait AuditLog {
    /// Adds an entry.
    fn append_audit_entry(&mut self, organization: OrganizationId, entry: &AuditEntry) -> StoreResult<()>;
    /// A part of the entries that pass a filter, the newest first, of one instant the largest reference first.
    fn audit_entries(
        &mut self,
        organization: OrganizationId,
        filter: &AuditFilter,
        part: AuditPart,
    ) -> StoreResult<Vec<AuditEntry>>;
    /// How many entries pass a filter.
    fn count_audit_entries(&mut self, organization: OrganizationId, filter: &AuditFilter) -> StoreResult<u64>;
}
