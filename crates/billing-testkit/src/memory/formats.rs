//! Usage formats: a row for every version.

use billing_domain::calendar::Timestamp;
use billing_domain::format::FormatVersion;
use billing_domain::page::Page;
use billing_domain::ports::{Insertion, StoreError, StoreResult, Update, UsageFormats};
use billing_domain::refs::{FormatRef, OrganizationId};
use billing_domain::text::OneLine;

use super::{MemoryTx, sorted};

impl MemoryTx {
    fn versions<'s>(
        &'s self,
        organization: OrganizationId,
        format_ref: &'s FormatRef,
    ) -> impl Iterator<Item = &'s FormatVersion> {
        self.state.formats.of(organization).filter(move |row| row.format.format_ref == *format_ref)
    }

    /// The newest version of every format, with the format's creation.
    fn newest(&self, organization: OrganizationId) -> Vec<(Timestamp, FormatVersion)> {
        let firsts = self.state.formats.of(organization).filter(|row| row.format.version == 1);
        let newest = |first: &FormatVersion| {
            let newest = self.versions(organization, &first.format.format_ref).max_by_key(|row| row.format.version);
            newest.map(|newest| (first.made_at, newest.clone()))
        };
        firsts.filter_map(newest).collect()
    }
}

impl UsageFormats for MemoryTx {
    fn insert_format(&mut self, organization: OrganizationId, first: &FormatVersion) -> StoreResult<Insertion> {
        if self.versions(organization, &first.format.format_ref).next().is_some() {
            return Ok(Insertion::Taken("format_ref"));
        }
        if self.format_by_name(organization, &first.format.name)?.is_some() {
            return Ok(Insertion::Taken("format_name"));
        }
        self.state.formats.push(organization, first.clone());
        Ok(Insertion::Done)
    }

    fn append_format_version(&mut self, organization: OrganizationId, next: &FormatVersion) -> StoreResult<Update> {
        let Some(newest) = self.format(organization, &next.format.format_ref)? else { return Ok(Update::Unknown) };
        let namesake = self.format_by_name(organization, &next.format.name)?;
        if namesake.is_some_and(|namesake| namesake.format.format_ref != next.format.format_ref) {
            return Ok(Update::Taken("format_name"));
        }
        if newest.format.version + 1 != next.format.version {
            return Err(StoreError::Contended);
        }
        self.state.formats.push(organization, next.clone());
        Ok(Update::Done)
    }

    fn format(&mut self, organization: OrganizationId, format_ref: &FormatRef) -> StoreResult<Option<FormatVersion>> {
        Ok(self.versions(organization, format_ref).max_by_key(|row| row.format.version).cloned())
    }

    fn format_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Option<FormatVersion>> {
        Ok(self.newest(organization).into_iter().map(|(_, newest)| newest).find(|newest| newest.format.name == *name))
    }

    fn format_version(
        &mut self,
        organization: OrganizationId,
        format_ref: &FormatRef,
        version: u32,
    ) -> StoreResult<Option<FormatVersion>> {
        Ok(self.versions(organization, format_ref).find(|row| row.format.version == version).cloned())
    }

    fn formats(&mut self, organization: OrganizationId, skip: u64, limit: u32) -> StoreResult<Page<FormatVersion>> {
        let newest = self.newest(organization);
        let all = sorted(newest.iter(), |(created_at, newest)| (*created_at, newest.format.format_ref.clone()));
        let (skip, limit) = (usize::try_from(skip).unwrap_or(usize::MAX), usize::try_from(limit).unwrap_or(usize::MAX));
        let total = all.len() as u64;
        Ok(Page { items: all.into_iter().skip(skip).take(limit).map(|(_, newest)| newest).collect(), total })
    }
}
