//! Storage of usage formats. The rules of all ports of the store apply here, too.

use crate::format::FormatVersion;
use crate::page::{ListSortKey, Page, PageRequest, UpdateFilter};
use crate::refs::{FormatRef, OrganizationId};
use crate::text::OneLine;

use super::{Insertion, StoreResult, Update};

/// Storage of usage formats with all their versions. The built-in format is not stored.
pub trait UsageFormats {
    /// Stores the first version of a new format. Returns `Taken("format_ref")` or `Taken("format_name")` when the value
    /// is not unique among the organization's current formats.
    fn insert_format(&mut self, organization: OrganizationId, first: &FormatVersion) -> StoreResult<Insertion>;
    /// Stores the next version of a format. Earlier versions stay unchanged. Returns `Taken("format_name")` when another
    /// format currently has the name.
    ///
    /// # Errors
    /// Returns [`Contended`](super::StoreError::Contended) when the newest stored version is not the previous version.
    fn append_format_version(&mut self, organization: OrganizationId, next: &FormatVersion) -> StoreResult<Update>;
    /// Returns the newest version of a format, by reference.
    fn format(&mut self, organization: OrganizationId, format_ref: &FormatRef) -> StoreResult<Option<FormatVersion>>;
    /// Returns the newest version of a format, by its current name.
    fn format_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Option<FormatVersion>>;
    /// Returns one version of a format, by reference and version number.
    fn format_version(
        &mut self,
        organization: OrganizationId,
        format_ref: &FormatRef,
        version: u32,
    ) -> StoreResult<Option<FormatVersion>>;
    /// Returns a page of the newest versions of the formats that match conditions on the last change. The order may be
    /// ascending or descending.
    fn listed_formats(
        &mut self,
        organization: OrganizationId,
        updates: &UpdateFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<FormatVersion>>;
    /// Returns the newest version of every format, ordered by creation of the format. Skips the first `skip` formats and
    /// returns at most `limit`.
    fn formats(&mut self, organization: OrganizationId, skip: u64, limit: u32) -> StoreResult<Page<FormatVersion>>;
}
