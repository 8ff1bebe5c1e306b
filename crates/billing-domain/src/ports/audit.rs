//! The audit log.

use super::StoreResult;
use crate::access::RequestId;
use crate::audit::{AuditAction, AuditActor, AuditEntry, AuditPosition, AuditedKind};
use crate::calendar::Timestamp;
use crate::refs::{CustomerId, OrganizationId};

/// A filter for audit entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Matches entries with this author.
    pub author: Option<AuditActor>,
    /// Matches entries with this action.
    pub action: Option<AuditAction>,
    /// Matches entries about this kind of object.
    pub kind: Option<AuditedKind>,
    /// Matches entries about the object with this reference.
    pub reference: Option<String>,
    /// Matches entries at this instant or later.
    pub from: Option<Timestamp>,
    /// Matches entries before this instant.
    pub to: Option<Timestamp>,
    /// Matches entries of this request.
    pub request_id: Option<RequestId>,
    /// Excludes entries about API keys and administrators.
    pub without_access: bool,
}

/// A window into the list of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditPart {
    /// The position after which the window starts. Without a position, the window starts at the newest entry.
    pub after: Option<AuditPosition>,
    /// The number of entries to skip from there. Skipping an entry costs as much as reading it.
    pub skip: u64,
    /// The maximum number of entries.
    pub limit: u32,
}

/// Storage of the audit log. Entries are immutable.
pub trait AuditLog {
    /// Adds an entry. The customer is the one whom the change concerns, if any.
    fn append_audit_entry(
        &mut self,
        organization: OrganizationId,
        customer: Option<CustomerId>,
        entry: &AuditEntry,
    ) -> StoreResult<()>;
    /// Returns a window of the entries that match a filter, newest first. At equal times, larger references come first.
    fn audit_entries(
        &mut self,
        organization: OrganizationId,
        filter: &AuditFilter,
        part: AuditPart,
    ) -> StoreResult<Vec<AuditEntry>>;
    /// Returns the number of entries that match a filter.
    fn count_audit_entries(&mut self, organization: OrganizationId, filter: &AuditFilter) -> StoreResult<u64>;
}
