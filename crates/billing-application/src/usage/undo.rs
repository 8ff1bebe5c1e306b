//! Lists imports and undoes them. Undoing an import deletes the events that it created and that still count. It also deletes
//! their idempotency keys, so that the file can be imported again.
//!
//! An import may contain millions of events. Each transaction deletes at most [`UNDONE_PER_TRANSACTION`] events and records
//! its progress. An interrupted undo therefore continues where it stopped, and repeated requests delete each event once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use billing_domain::audit::AuditAction;
use billing_domain::imports::{IMPORTS_KEPT_DAYS, ImportRecord, ImportUndo};
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{ImportFilter, StoreError};
use billing_domain::refs::{CustomerId, DocumentRef, EventRef, ImportPartRef, ImportRef, OrganizationId};

use super::change::{ChangeBatch, ChangeOutcome, ChangeRequest, EventChange};
use super::ingest::MAX_HOLD_ATTEMPTS;
use crate::Services;
use crate::audit::{AuditChange, AuditSubject, ImportUndoSummary};
use crate::basics::{DAY_SECONDS, purge_in_parts};
use crate::carry_out::{Cx, Transactions};
use crate::dry_run::{DocumentChange, EffectTotals};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// The maximum number of events deleted in one transaction. The limit keeps locks short.
pub const UNDONE_PER_TRANSACTION: usize = 250;
/// The number of events that cannot be deleted after which an undo stops.
const MAX_REFUSED: usize = 1_000;
/// The number of old imports deleted in one transaction.
const PURGED_PER_TRANSACTION: u32 = 100;

/// Returns a page of the organization's imports that match a filter.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the imports cannot be read.
pub fn list_imports(
    cx: &mut Cx<'_>,
    filter: &ImportFilter,
    by: ListSortKey,
    page: PageRequest,
) -> UseCaseResult<Page<ImportRecord>> {
    Ok(cx.tx.listed_imports(cx.organization, filter, by, page)?)
}

/// An import with the number of events that remain to be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportView {
    /// The import.
    pub import: ImportRecord,
    /// The number of created events that no undo has processed yet.
    pub left: u64,
}

/// Returns an import.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the import does not exist, or was purged.
pub fn get_import(cx: &mut Cx<'_>, import_ref: ImportRef) -> UseCaseResult<ImportView> {
    let import = cx.tx.import(cx.organization, import_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Import))?;
    Ok(ImportView { import, left: cx.tx.count_imported_events(cx.organization, import_ref)? })
}

/// The result of a request to undo an import.
#[derive(Debug)]
pub struct UndoResult {
    /// The import after the request.
    pub view: ImportView,
    /// The number of events deleted by the request.
    pub deleted: u64,
    /// Events that were already deleted.
    pub already_deleted: Vec<EventRef>,
    /// Events that could not be deleted, with the errors. They still count.
    pub refused: Vec<(EventRef, UseCaseError)>,
    /// The documents with other amounts, from before the first transaction that changed each to after the last one. Empty in a
    /// dry run, which has effects of its own.
    pub changes: Vec<DocumentChange>,
    /// The sums of these changes by currency.
    pub totals: Vec<EffectTotals>,
}

/// The work of one transaction of an undo.
#[derive(Clone, Debug)]
pub struct UndoStep {
    organization: OrganizationId,
    import_ref: ImportRef,
    /// The last part of the import in which no event is left to delete.
    after: Option<ImportPartRef>,
    /// Events that earlier steps could not delete.
    refused: BTreeSet<EventRef>,
}

/// The result of one transaction of an undo.
#[derive(Debug, Default)]
pub struct UndoneStep {
    deleted: u64,
    already_deleted: Vec<EventRef>,
    refused: Vec<(EventRef, UseCaseError)>,
    /// The changed documents.
    changes: Vec<DocumentChange>,
    /// The processed part, if no event in it is left to delete.
    passed: Option<ImportPartRef>,
    is_last: bool,
}

/// Deletes the events of an import that still count, while `may_go_on` returns true. A repeated request continues.
/// `take_turn` executes a step when its turn comes.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the import does not exist, or any error of the first step. An error of a later step
/// ends the undo early and is only logged, except within an outer transaction.
pub fn undo_import(
    transactions: &mut Transactions<'_, '_>,
    import_ref: ImportRef,
    may_go_on: &dyn Fn() -> bool,
    take_turn: &mut dyn FnMut(&mut Transactions<'_, '_>, UndoStep) -> UseCaseResult<UndoneStep>,
) -> UseCaseResult<UndoResult> {
    let organization = transactions.author()?.organization;
    let mut step = UndoStep { organization, import_ref, after: None, refused: BTreeSet::new() };
    let (mut all, mut changes) = (UndoneStep::default(), ChangesOfSteps::default());
    let (mut is_begun, mut in_vain) = (false, 0);
    loop {
        let done = match take_turn(transactions, step.clone()) {
            Ok(done) => done,
            Err(error) if !is_begun || transactions.is_joined() => return Err(error),
            Err(error) => {
                tracing::warn!(%error, %import_ref, "an import is undone in part");
                break;
            }
        };
        is_begun = true;
        let UndoneStep { deleted, already_deleted, refused, changes: changed, passed, is_last } = done;
        changes.add(changed)?;
        let is_in_vain = deleted == 0 && already_deleted.is_empty() && refused.is_empty() && passed.is_none();
        in_vain = if is_in_vain { in_vain + 1 } else { 0 };
        all.deleted += deleted;
        all.already_deleted.extend(already_deleted);
        step.after = passed.or(step.after);
        step.refused.extend(refused.iter().map(|(event_ref, _)| *event_ref));
        all.refused.extend(refused);
        if is_last || !may_go_on() || in_vain >= MAX_HOLD_ATTEMPTS || all.refused.len() >= MAX_REFUSED {
            break;
        }
    }
    let UndoneStep { deleted, already_deleted, refused, .. } = all;
    let view = transactions.write(organization, |cx| {
        let view = get_import(cx, import_ref)?;
        if deleted > 0 {
            let (name, already_deleted, refused) =
                (view.import.file.name.clone(), already_deleted.len() as u64, refused.len() as u64);
            let file = ImportUndoSummary { name, import_ref, deleted, already_deleted, refused };
            cx.audit(AuditAction::UndoImport, AuditChange::Made(AuditSubject::UndoneFile(&file)))?;
        }
        Ok::<_, UseCaseError>(view)
    })?;
    let changes = changes.in_order();
    let totals = EffectTotals::by_currency(&changes)?;
    Ok(UndoResult { view, deleted, already_deleted, refused, changes, totals })
}

/// The changes of documents by several transactions, each document once.
#[derive(Debug, Default)]
struct ChangesOfSteps {
    places: BTreeMap<DocumentRef, usize>,
    changes: Vec<DocumentChange>,
}

impl ChangesOfSteps {
    /// Adds the changes of the next transaction.
    fn add(&mut self, changes: Vec<DocumentChange>) -> UseCaseResult<()> {
        for change in changes {
            let Some((document_ref, _)) = &change.document else { continue };
            match self.places.entry(*document_ref) {
                Entry::Occupied(place) => {
                    let earlier = &mut self.changes[*place.get()];
                    *earlier = change.following(earlier)?;
                }
                Entry::Vacant(place) => {
                    place.insert(self.changes.len());
                    self.changes.push(change);
                }
            }
        }
        Ok(())
    }

    /// Returns the changes of billed amounts, in the order of the first change.
    fn in_order(mut self) -> Vec<DocumentChange> {
        self.changes.retain(|change| change.billed.before != change.billed.after);
        self.changes
    }
}

impl UndoStep {
    /// Deletes some events in one transaction.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Unknown`] if the import does not exist, or [`UseCaseError::Store`] if the transaction fails.
    pub fn carry_out(&self, transactions: &mut Transactions<'_, '_>) -> UseCaseResult<UndoneStep> {
        transactions.write(self.organization, |cx| self.decide(cx))
    }

    fn decide(&self, cx: &mut Cx<'_>) -> UseCaseResult<UndoneStep> {
        let Self { organization, import_ref, after, refused } = self;
        let (organization, import_ref, now) = (*organization, *import_ref, cx.now);
        // A concurrent undo of the same import waits for this lock.
        let import = cx.tx.hold_import(organization, import_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Import))?;
        let author = cx.author().author;
        let begun = ImportUndo { author, begun_at: now, ended_at: None, deleted: 0, already_deleted: 0 };
        let mut undone = import.undone.clone().unwrap_or(begun);
        let Some(part) = cx.tx.imported_events(organization, import_ref, *after)? else {
            if cx.tx.count_imported_events(organization, import_ref)? == 0 && undone.ended_at.is_none() {
                undone.ended_at = Some(now);
            }
            cx.tx.put_import(organization, &ImportRecord { undone: Some(undone), updated_at: now, ..import })?;
            return Ok(UndoneStep { is_last: true, ..UndoneStep::default() });
        };
        let wanted = part.events.iter().filter(|event_ref| !refused.contains(event_ref)).copied();
        let wanted: Vec<EventRef> = wanted.take(UNDONE_PER_TRANSACTION).collect();
        if wanted.is_empty() {
            return Ok(UndoneStep { passed: Some(part.part), ..UndoneStep::default() });
        }
        let owners: BTreeMap<EventRef, CustomerId> =
            cx.tx.events_by_refs(organization, &wanted)?.into_iter().map(|event| (event.event_ref, event.customer_id)).collect();
        let asked: Vec<ChangeRequest<'_>> = wanted
            .iter()
            .map(|event_ref| ChangeRequest { event_ref: *event_ref, change: &EventChange::Delete, delivery: None })
            .collect();
        let changing = ChangeBatch { asked: &asked };
        let (mut step, mut gone) = (UndoneStep::default(), Vec::new());
        let (outcomes, changes) = cx.with_effects(&mut |cx| changing.decide(cx))?;
        step.changes = changes;
        for (event_ref, outcome) in wanted.iter().zip(outcomes) {
            match outcome {
                Some(Ok(ChangeOutcome::Deleted)) => step.deleted += 1,
                Some(Err(UseCaseError::Unknown(_))) => step.already_deleted.push(*event_ref),
                Some(Ok(ChangeOutcome::Updated(_))) => {
                    return Err(UseCaseError::InvariantViolation("an event that was deleted and is there"));
                }
                Some(Err(refusal)) => {
                    step.refused.push((*event_ref, refusal));
                    continue;
                }
                // Deferred to a later transaction.
                None => continue,
            }
            let owner =
                owners.get(event_ref).ok_or(StoreError::Corrupt(format!("an import made {event_ref}, which isn't there")))?;
            gone.push((*owner, *event_ref));
        }
        if !gone.is_empty() {
            cx.tx.forget_imported_events(organization, import_ref, part.part, &gone)?;
            undone.author = author;
            undone.deleted += step.deleted;
            undone.already_deleted += step.already_deleted.len() as u64;
        }
        // The import may have recorded more events since an earlier undo ended.
        undone.ended_at = None;
        cx.tx.put_import(organization, &ImportRecord { undone: Some(undone), updated_at: now, ..import })?;
        Ok(step)
    }
}

/// Deletes the records of imports that began more than 400 days ago, in every organization. Returns their number.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the records cannot be deleted.
pub fn forget_old_imports(services: &Services) -> UseCaseResult<u64> {
    let oldest = services.now().plus_seconds(-IMPORTS_KEPT_DAYS * DAY_SECONDS);
    purge_in_parts(services, PURGED_PER_TRANSACTION, |tx, limit| tx.purge_imports(oldest, limit))
}
