//! Records of file imports and of the events that each import created.

use super::StoreResult;
use crate::calendar::Timestamp;
use crate::imports::{ImportRecord, ImportedEvent};
use crate::page::{Direction, ListSortKey, Page, PageRequest, UpdateFilter};
use crate::refs::{CustomerId, EventRef, ImportPartRef, ImportRef, OrganizationId};

/// A filter for imports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportFilter {
    /// Matches imports that began at this instant or later.
    pub from: Option<Timestamp>,
    /// Matches imports that began before this instant.
    pub to: Option<Timestamp>,
    /// Matches imports of files with this name.
    pub name: Option<String>,
    /// Conditions on the time of the last change.
    pub updates: UpdateFilter,
}

/// A part of the events that an import created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadePart {
    /// The position of the part in its import. Later parts have larger references.
    pub part: ImportPartRef,
    /// The events, in the order of creation.
    pub events: Vec<EventRef>,
}

/// Storage of imports.
pub trait UsageImports {
    /// Stores the current state of an import and replaces the earlier state. The record of created events stays.
    fn put_import(&mut self, organization: OrganizationId, import: &ImportRecord) -> StoreResult<()>;
    /// Returns an import.
    fn import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>>;
    /// Locks an import until the transaction ends and returns it. No other transaction can lock or change it meanwhile.
    fn hold_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<Option<ImportRecord>>;
    /// Returns a page of the imports that match a filter, ordered by start or by the last change, then by reference. The
    /// order may be ascending or descending. Each import includes only its first documents.
    fn listed_imports(
        &mut self,
        organization: OrganizationId,
        filter: &ImportFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<ImportRecord>>;
    /// Returns a page of the imports that match a filter, ordered by start, then by reference, newest first.
    fn imports(
        &mut self,
        organization: OrganizationId,
        filter: &ImportFilter,
        page: PageRequest,
    ) -> StoreResult<Page<ImportRecord>> {
        self.listed_imports(organization, filter, ListSortKey::Created, page.in_direction(Direction::Backward))
    }
    /// Records events that an import created, as one part.
    fn add_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[ImportedEvent],
    ) -> StoreResult<()>;
    /// Returns the next part of the events that an import created, after a given part. Returns `None` after the last
    /// part.
    fn imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        after: Option<ImportPartRef>,
    ) -> StoreResult<Option<MadePart>>;
    /// Returns the number of recorded events of an import.
    fn count_imported_events(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<u64>;
    /// Deletes the record of some events of a part, and their idempotency keys. A later event with one of these keys is a
    /// new event.
    ///
    /// A part without events no longer exists.
    fn forget_imported_events(
        &mut self,
        organization: OrganizationId,
        import_ref: ImportRef,
        part: ImportPartRef,
        events: &[(CustomerId, EventRef)],
    ) -> StoreResult<()>;
    /// Deletes an import and its records of created events.
    fn forget_import(&mut self, organization: OrganizationId, import_ref: ImportRef) -> StoreResult<()>;
    /// Deletes imports of all organizations that began before an instant, with their records of created events. Deletes
    /// at most `limit` imports. Returns the number of deleted imports.
    fn purge_imports(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
