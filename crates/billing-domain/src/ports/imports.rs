//! Imports of files, as they are told afterwards, and the events that each made.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::imports::{ImportRecord, ImportedEvent};
use crate::page::{Page, PageRequest};
use crate::refs::{CustomerId, EventRef, ImportPartRef, ImportRef, OrganizationId};

/// What imports are narrowed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportFilter {
    /// That began at this instant or later.
    pub from: Option<Timestamp>,
    /// That began before this instant.
    pub to: Option<Timestamp>,
    /// Of files of this name.
    pub name: Option<String>,
}

/// Some of the events that an import made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadePart {
    /// What it is known by in its import; later ones come behind.
    pub part: ImportPartRef,
    /// The events, in the order in which they were made.
    pub events: Vec<EventRef>,
}

/// Imports.
#[cfg_attr(feature = "mocks", mockall::automock)]
pub trait UsageImports {
    /// Keeps an import as it is now, in the place of what was kept of it; the events it made stay.
    fn put_import(&mut self, organization: OrganizationId, import: &ImportRecord) -> StoreResult<()>;
    /// An import.
    fn import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>>;
    /// The same, held until the transaction ends: nobody else holds or changes it meanwhile.
    fn hold_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>>;
    /// Imports that pass a filter, by when they began, then by reference, the newest first; of each no more than its first documents.
    fn imports(
        &mut self,
        organization: OrganizationId,
        filter: &ImportFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ImportRecord>>;
    /// Notes events that an import made, as one part.
    fn add_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[ImportedEvent],
    ) -> StoreResult<()>;
    /// The next part of the events that an import made, from one on; none behind the last.
    fn imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        after: Option<ImportPartRef>,
    ) -> StoreResult<Option<MadePart>>;
    /// How many events are noted of an import.
    fn count_imported_events(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<u64>;
    /// Forgets that an import made some events of a part, each of a customer, and the keys they were sent with: who sends one of those
    /// keys again sends a new event. A part without events isn't there any more.
    fn forget_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[(CustomerId, EventRef)],
    ) -> StoreResult<()>;
    /// Forgets an import with what it made.
    fn forget_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<()>;
    /// Forgets imports that began before an instant with what they made, of every organization, at most so many. Answers how many
    /// went.
    fn purge_imports(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
