//! The audit log.

use billing_domain::audit::{AuditEntry, AuditedKind};
use billing_domain::ports::{AuditFilter, AuditLog, AuditPart, StoreResult};
use billing_domain::refs::OrganizationId;

use super::MemoryTx;

fn passes(filter: &AuditFilter, entry: &AuditEntry) -> bool {
    let AuditFilter { author, action, kind, reference, from, to, request_id, without_access } = filter;
    author.is_none_or(|author| author == entry.author)
        && action.is_none_or(|action| action == entry.action)
        && kind.is_none_or(|kind| kind == entry.kind)
        && reference.as_ref().is_none_or(|reference| *reference == entry.reference)
        && from.is_none_or(|from| from <= entry.at)
        && to.is_none_or(|to| entry.at < to)
        && request_id.as_ref().is_none_or(|request_id| Some(request_id) == entry.request_id.as_ref())
        && !(*without_access && matches!(entry.kind, AuditedKind::ApiKey | AuditedKind::Administrator))
}

impl AuditLog for MemoryTx {
    fn append_audit_entry(&mut self, organization: OrganizationId, entry: &AuditEntry) -> StoreResult<()> {
        self.state.audit_log.push(organization, entry.clone());
        Ok(())
    }

    fn audit_entries(
        &mut self,
        organization: OrganizationId,
        filter: &AuditFilter,
        part: AuditPart,
    ) -> StoreResult<Vec<AuditEntry>> {
        let passing = self.state.audit_log.of(organization).filter(|entry| passes(filter, entry));
        let mut found: Vec<AuditEntry> =
            passing.filter(|entry| part.after.is_none_or(|after| entry.position() < after)).cloned().collect();
        found.sort_by_key(|entry| std::cmp::Reverse(entry.position()));
        let (skip, limit) = (usize::try_from(part.skip), usize::try_from(part.limit));
        Ok(found.into_iter().skip(skip.unwrap_or(usize::MAX)).take(limit.unwrap_or(usize::MAX)).collect())
    }

    fn count_audit_entries(&mut self, organization: OrganizationId, filter: &AuditFilter) -> StoreResult<u64> {
        Ok(self.state.audit_log.of(organization).filter(|entry| passes(filter, entry)).count() as u64)
    }
}
