//! The store of usage formats. The duties of all of the store's ports hold here, too.

use crate::format::FormatVersion;
use crate::page::Page;
use crate::refs::{FormatRef, OrganizationId};
use crate::text::OneLine;

use super::{Insertion, StoreResult, Update};

/// Usage formats, with all their versions. The built-in format is none of them.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageFormats {
    /// Stores a new format's first version. `Taken("format_ref")` or `Taken("format_name")`, unique in the
    /// organization among formats as they are now.
    fn insert_format(&mut self, organization: OrganizationId, first: &FormatVersion) -> StoreResult<Insertion>;
    /// Stores a format's next version; those before it stay as they are. `Taken("format_name")` when another format
    /// has its name now.
    ///
    /// # Errors
    /// [`Contended`](super::StoreError::Contended) when the newest version stored isn't the one before.
    fn append_format_version(&mut self, organization: OrganizationId, next: &FormatVersion) -> StoreResult<Update>;
    /// A format's newest version, by reference.
    fn format(&mut self, organization: OrganizationId, format_ref: &FormatRef) -> StoreResult<Option<FormatVersion>>;
    /// A format's newest version, by the name it has now.
    fn format_by_name(&mut self, organization: OrganizationId, name: &OneLine) -> StoreResult<Option<FormatVersion>>;
    /// One version of a format, by reference and number.
    fn format_version(
        &mut self,
        organization: OrganizationId,
        format_ref: &FormatRef,
        version: u32,
    ) -> StoreResult<Option<FormatVersion>>;
    /// The newest version of every format, by the format's creation: at most `limit`, after the first `skip`.
    fn formats(&mut self, organization: OrganizationId, skip: u64, limit: u32) -> StoreResult<Page<FormatVersion>>;
}
