//! Imports files of usage events. Each event is recorded once. The import is stored with a summary.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread::sleep;
use std::time::Duration;

use billing_domain::audit::AuditAction;
use billing_domain::calendar::Date;
use billing_domain::event_input::{
    FileEvent, FileEventKey, FileLine, MAX_BATCH_EVENTS, NamedUsageProduct, NewUsageEvent, OnConflict,
};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::imports::{ImportRecord, ImportedDocument, ImportedFileFacts, MAX_IMPORT_DOCUMENTS};
use billing_domain::money::Money;
use billing_domain::ports::{StoreError, Tx};
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EventRef, ImportRef, OrganizationId};
use billing_domain::usage::{FactsDigest, UsageEvent};
use billing_domain::violation::Violations;

use super::batch::{BatchOutcome, EVENTS_PER_TRANSACTION};
use super::formatted::of_mapped;
use super::import_lines::{EventOutcome, FileChunk, ImportChunkResult, LineOutcome, MappedLines, RefusedLine, RejectedLine};
use super::import_summary::{AffectedDocument, ChangedTotal, ImportSummary};
use super::outcome::IngestOutcome;
use super::read::EventView;
use super::record::dry_run_usage;
use super::recorded_lines::{KeyedLine, RecordedLines};
use crate::audit::{AuditChange, AuditSubject, ImportFileSummary};
use crate::carry_out::{AuditContext, Cx, Transactions};
use crate::documents::view_all;
use crate::error::{UNKNOWN_REFERENCE, UseCaseError, UseCaseResult};
use crate::formats::{NamedFormat, find_format};

/// The maximum number of documents for which a dry run reports totals.
const MAX_TOTALS: usize = 100;
/// The maximum number of attempts of a transaction that conflicts with others.
const MAX_ATTEMPTS: u32 = 10;

/// How a file is imported.
pub struct FileImportOptions<'o> {
    /// The usage format of the events.
    pub format: NamedFormat,
    /// The facts about the file to store with the import.
    pub file: ImportedFileFacts,
    /// What happens to events whose keys have other facts.
    pub on_conflict: OnConflict,
    /// Whether nothing is stored.
    pub dry_run: bool,
    /// The first line to process. Earlier lines are skipped and not counted.
    pub from_line: u64,
    /// The number of lines in a transaction. `None` means [`EVENTS_PER_TRANSACTION`], or [`MAX_BATCH_EVENTS`] in a dry run,
    /// which computes document totals only within one transaction.
    pub lines_per_transaction: Option<usize>,
    /// Returns whether the import may continue. Called before each transaction except the first.
    pub may_go_on: &'o dyn Fn() -> bool,
    /// The pause before a transaction that conflicts with others is repeated. `None` means that it is not repeated.
    pub retry_pause: Option<Duration>,
}

/// The reason why an import stopped before the end of its file.
#[derive(Debug)]
pub enum ImportStop<E> {
    /// The import was not allowed to continue.
    OutOfTime,
    /// A transaction failed.
    Failed(UseCaseError),
    /// The caller could not read a line or report a rejected one.
    Caller(E),
}

/// The result of the import of a file.
#[derive(Debug)]
pub struct ImportedFile<E> {
    /// The import's reference. `None` in a dry run.
    pub import_ref: Option<ImportRef>,
    /// The accepted events.
    pub summary: ImportSummary,
    /// The number of rejected lines.
    pub refused: u64,
    /// The first line that was not processed, if the import stopped.
    pub stopped: Option<(u64, ImportStop<E>)>,
}

/// Reports the rejected lines of a transaction, with the results so far.
pub type ImportSink<'s, E> = dyn FnMut(Vec<RejectedLine>, &ImportSummary) -> Result<(), E> + 's;

/// Imports a file in several transactions. `record` records the events of a transaction. If something is already stored, an
/// error stops the import. The result then names the first line that was not processed.
///
/// # Errors
/// Returns the error of the first transaction, or any error if all transactions are joined. Nothing is stored then.
pub fn import_file<E>(
    transactions: &mut Transactions<'_, '_>,
    options: FileImportOptions<'_>,
    lines: &mut dyn Iterator<Item = Result<FileLine, E>>,
    record: &mut RecordChunk<'_>,
    sink: &mut ImportSink<'_, E>,
) -> UseCaseResult<ImportedFile<E>> {
    let FileImportOptions { format, file, on_conflict, dry_run, from_line, lines_per_transaction, may_go_on, retry_pause } =
        options;
    let mut lines = lines.skip_while(|line| line.as_ref().is_ok_and(|line| line.number < from_line));
    let mut import =
        retry(retry_pause, || FileImport::begin(transactions, (format.clone(), file.clone()), on_conflict, dry_run))?;
    // In one transaction, the whole file is one chunk: the contracts of later lines must not be locked after the totals of earlier ones.
    let usual = if dry_run { MAX_BATCH_EVENTS } else { EVENTS_PER_TRANSACTION };
    let step = lines_per_transaction.unwrap_or(if transactions.is_joined() { usize::MAX } else { usual });
    import.events_per_transaction = step;
    let (mut refused, mut stopped, mut is_first, mut next) = (0, None, true, from_line);
    let (mut chunk, mut unreadable) = (FileChunk::default(), None);
    while stopped.is_none() {
        if chunk.is_empty() && unreadable.is_none() {
            unreadable = chunk.read(&mut lines.by_ref().take(step)).err();
        }
        let Some(first) = chunk.first_line() else {
            stopped = unreadable.map(|error| (next, ImportStop::Caller(error)));
            break;
        };
        // Earlier lines are stored, so the result must report them.
        let may_stop = !std::mem::take(&mut is_first) && !transactions.is_joined();
        if may_stop && !may_go_on() {
            stopped = Some((first, ImportStop::OutOfTime));
            break;
        }
        match retry(retry_pause, || import.take(transactions, &chunk.events, record)) {
            Ok(result) => {
                let (rejected, last, stopped_at) = chunk.pass(result);
                refused += rejected.len() as u64;
                next = last + 1;
                let unreported = sink(rejected, import.summary()).err();
                stopped = stopped_at
                    .map(|(line, error)| (line, ImportStop::Failed(error)))
                    .or_else(|| Some((next, ImportStop::Caller(unreported?))));
            }
            Err(error) if may_stop => stopped = Some((first, ImportStop::Failed(error))),
            Err(error) => {
                if let Err(error) = import.discard(transactions) {
                    tracing::warn!(%error, "the record of an import that recorded nothing cannot be deleted");
                }
                return Err(error);
            }
        }
    }
    let stopped_at = stopped.as_ref().map(|(line, _)| *line);
    if stopped.is_some() {
        // They would leave out the lines after the stop.
        import.clear_totals();
    }
    match retry(retry_pause, || import.end(transactions, refused, stopped_at)) {
        // The events are stored, so the result must report them.
        Err(error) if !transactions.is_joined() => tracing::error!(%error, "the result of an import cannot be stored"),
        ended => ended?,
    }
    Ok(ImportedFile { import_ref: import.import_ref, summary: import.summary, refused, stopped })
}

/// Repeats work that conflicts with other transactions, if a pause is given.
fn retry<T>(pause: Option<Duration>, mut work: impl FnMut() -> UseCaseResult<T>) -> UseCaseResult<T> {
    let mut attempts = 1;
    loop {
        match (work(), pause) {
            (Err(UseCaseError::Store(StoreError::Contended)), Some(pause)) if attempts < MAX_ATTEMPTS => {
                attempts += 1;
                sleep(pause);
            }
            (outcome, _) => return outcome,
        }
    }
}

/// An import of a file in progress, batch by batch.
#[derive(Debug)]
pub struct FileImport {
    organization: OrganizationId,
    format: NamedFormat,
    on_conflict: OnConflict,
    /// `None` in a dry run.
    import_ref: Option<ImportRef>,
    summary: ImportSummary,
    places: HashMap<AffectedDocumentKey, usize>,
    /// The event keys that would be stored by now, for each customer. Only used in a dry run.
    tried: BTreeMap<(CustomerRef, IdempotencyKey), FactsDigest>,
    /// The number of batches in a dry run. Document totals are only known for a file with one batch.
    slices: usize,
    recorded_lines: RecordedLines,
    /// The number of events after which a transaction takes no further line. A line can have several events.
    events_per_transaction: usize,
}

/// Records events of a file, as many as possible, in the given transactions.
pub type RecordChunk<'r> = dyn FnMut(&mut Transactions<'_, '_>, Vec<NewUsageEvent>) -> UseCaseResult<BatchOutcome> + 'r;

/// The identity of an affected document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AffectedDocumentKey {
    Document(DocumentRef),
    /// A dry run gives a new document another reference in every batch.
    ToBeOpened(ContractRef, Date),
    /// A child document to be opened for one event.
    ToBeOpenedFor(EventRef),
}

/// The affected documents as they are without the dry run.
#[derive(Debug, Default)]
struct DocumentSnapshot {
    /// Documents that exist.
    there: BTreeSet<DocumentRef>,
    /// The totals of the first documents, before and after the events.
    totals: BTreeMap<DocumentRef, ChangedTotal>,
}

impl FileImport {
    /// Starts the import of a file and stores its record before any event. A dry run does the same work and stores nothing.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] if the record cannot be stored.
    pub fn begin(
        transactions: &mut Transactions<'_, '_>,
        (format, file): (NamedFormat, ImportedFileFacts),
        on_conflict: OnConflict,
        dry_run: bool,
    ) -> UseCaseResult<Self> {
        let services = transactions.services();
        let import_ref = (!dry_run).then(|| ImportRef::from_uuid(services.ids.new_id()));
        let AuditContext { organization, author, request_id } = transactions.author()?;
        // An unknown format is an error of the request, not of a line.
        let request_id = request_id.cloned();
        transactions.read(|tx| find_format(tx, organization, &format))?;
        if let Some(import_ref) = import_ref {
            transactions.write(organization, |cx| {
                let import = ImportRecord::begun(import_ref, file.clone(), author, request_id.clone(), cx.now);
                Ok::<_, UseCaseError>(cx.tx.put_import(organization, &import)?)
            })?;
        }
        Ok(Self {
            organization,
            format,
            on_conflict,
            import_ref,
            summary: ImportSummary::default(),
            places: HashMap::new(),
            tried: BTreeMap::new(),
            slices: 0,
            recorded_lines: RecordedLines::default(),
            events_per_transaction: if dry_run { MAX_BATCH_EVENTS } else { EVENTS_PER_TRANSACTION },
        })
    }

    /// Returns the import's reference, or `None` for a dry run.
    pub const fn import_ref(&self) -> Option<ImportRef> {
        self.import_ref
    }

    const fn is_dry_run(&self) -> bool {
        self.import_ref.is_none()
    }

    /// Records events of the file with `record`, which may process fewer events than it gets. Returns the rejected lines in
    /// the given order, the number of processed lines, and the line at which processing stopped. Events that are already
    /// recorded are found by reading, and `record` does not get them.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Invalid`] if the format does not exist, or any error that affects all events. In both cases
    /// no event is recorded, and the caller may retry.
    pub fn take(
        &mut self,
        transactions: &mut Transactions<'_, '_>,
        events: &[FileEvent],
        record: &mut RecordChunk<'_>,
    ) -> UseCaseResult<ImportChunkResult> {
        let decided = self.decide_lines(transactions, events)?;
        let format = transactions.read(|tx| find_format(tx, self.organization, &self.format))?;
        let mapped =
            MappedLines::map(transactions.services(), &format, (events, decided), self.on_conflict, self.events_per_transaction);
        let MappedLines { mut outcomes, mut new_events, lines, .. } = mapped;
        for index in self.recorded_before(transactions, &new_events)? {
            outcomes[index].result = Some(Ok(EventOutcome::Before));
        }
        new_events.retain(|(index, _)| outcomes[*index].result.is_none());
        let (indices, mut new_events): (Vec<usize>, Vec<NewUsageEvent>) = new_events.into_iter().unzip();
        new_events.iter_mut().for_each(|event| event.import = self.import_ref);
        let (BatchOutcome { results, mut stopped_by }, before) = if new_events.is_empty() {
            self.count_slice();
            (BatchOutcome::default(), DocumentSnapshot::default())
        } else if self.is_dry_run() {
            let (results, before) = self.rehearse(transactions, &new_events)?;
            (BatchOutcome { results, stopped_by: None }, before)
        } else {
            (record(transactions, new_events)?, DocumentSnapshot::default())
        };
        for (index, result) in indices.into_iter().zip(results) {
            outcomes[index].result = Some(match result {
                Ok(IngestOutcome::Recorded(view)) => Ok(EventOutcome::Recorded(view)),
                Ok(IngestOutcome::Updated(view)) => Ok(EventOutcome::Updated(view)),
                Ok(IngestOutcome::Replayed(_)) => Ok(EventOutcome::Before),
                Err(refusal) => Err(refusal),
            });
        }
        let mut result = ImportChunkResult { refused: Vec::new(), stopped: None, lines };
        for LineOutcome { line, item, known_by, result: outcome } in outcomes {
            let number = events[line].line;
            let none = || Err(stopped_by.take().unwrap_or(UseCaseError::InvariantViolation("an event without an outcome")));
            match outcome.unwrap_or_else(none).and_then(|taken| self.count(known_by.as_ref(), taken, &before)) {
                Ok(()) => {}
                Err(error @ (UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))) => {
                    result.stopped = Some((number, error));
                    break;
                }
                Err(refusal) => {
                    let error = self.explained(known_by.as_ref(), refusal);
                    result.refused.push(RefusedLine { number, item, error });
                }
            }
        }
        Ok(result)
    }

    /// Decides lines without mapping them: copies of events.
    fn decide_lines(
        &mut self,
        transactions: &mut Transactions<'_, '_>,
        events: &[FileEvent],
    ) -> UseCaseResult<Vec<Option<UseCaseResult<EventOutcome>>>> {
        let there = copies(transactions, self.organization, events)?;
        let is_copy = |event: &FileEvent| event_ref_of(event).is_some_and(|event_ref| there.contains(&event_ref));
        let mut outcomes: Vec<Option<UseCaseResult<EventOutcome>>> = Vec::with_capacity(events.len());
        for event in events {
            outcomes.push(match &event.event_ref {
                Some(_) if is_copy(event) => Some(Ok(EventOutcome::Copy)),
                // In other formats a field with this name may have any meaning.
                Some(_) if self.format.is_default() => Some(Err(unknown_event())),
                Some(_) | None => None,
            });
        }
        Ok(outcomes)
    }

    /// Returns the positions of events that are recorded with the same facts.
    fn recorded_before(
        &mut self,
        transactions: &mut Transactions<'_, '_>,
        events: &[(usize, NewUsageEvent)],
    ) -> UseCaseResult<BTreeSet<usize>> {
        let with_key = |(index, event): &'_ (usize, NewUsageEvent)| {
            let key = event.key.clone()?;
            Some(KeyedLine { index: *index, customer: event.customer.clone(), key, facts: event.facts() })
        };
        // A later event with a key of an updated one may have the facts from before the update.
        let mut times: BTreeMap<&IdempotencyKey, usize> = BTreeMap::new();
        for key in events.iter().filter_map(|(_, event)| event.key.as_ref()) {
            *times.entry(key).or_default() += 1;
        }
        let is_alone = |event: &NewUsageEvent| {
            let times = event.key.as_ref().and_then(|key| times.get(key));
            event.on_conflict == OnConflict::Reject || times.is_none_or(|times| *times == 1)
        };
        let lines: Vec<KeyedLine> = events.iter().filter(|(_, event)| is_alone(event)).filter_map(with_key).collect();
        if lines.is_empty() {
            return Ok(BTreeSet::new());
        }
        let (organization, recorded_lines) = (self.organization, &mut self.recorded_lines);
        transactions.read(|tx| recorded_lines.find(tx, organization, &lines))
    }

    /// Stores the result of the import, including the line at which it stopped. Records an audit event if events were
    /// recorded. Must be called after the last batch.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] if the result cannot be stored.
    pub fn end(&self, transactions: &mut Transactions<'_, '_>, refused: u64, stopped_at: Option<u64>) -> UseCaseResult<()> {
        let Some(import_ref) = self.import_ref else { return Ok(()) };
        let documents = self.summary.documents.iter().filter_map(AffectedDocument::kept);
        let documents: Vec<ImportedDocument> = documents.take(MAX_IMPORT_DOCUMENTS).collect();
        let more_documents = (self.summary.documents.len() - documents.len()) as u64;
        transactions.write(self.organization, |cx| {
            // The import may have been partly undone in between.
            let Some(present) = cx.tx.hold_import(cx.organization, import_ref)? else { return Ok(()) };
            let import = ImportRecord {
                ended_at: Some(cx.now),
                updated_at: cx.now,
                stopped_at,
                recorded: self.summary.recorded,
                updated: self.summary.updated,
                already_there: self.summary.already_there,
                skipped: self.summary.skipped,
                refused,
                documents: documents.clone(),
                more_documents,
                ..present
            };
            cx.tx.put_import(cx.organization, &import)?;
            if self.summary.recorded + self.summary.updated == 0 {
                return Ok(());
            }
            let file = ImportFileSummary { name: import.file.name.clone(), import_ref, taken: self.summary.clone(), refused };
            cx.audit(AuditAction::Import, AuditChange::Made(AuditSubject::UsageFile(&file)))
        })
    }

    /// Deletes the record of an import that recorded no events.
    ///
    /// # Errors
    /// Returns [`UseCaseError::Store`] if the record cannot be deleted.
    pub fn discard(&self, transactions: &mut Transactions<'_, '_>) -> UseCaseResult<()> {
        let Some(import_ref) = self.import_ref else { return Ok(()) };
        transactions.write(self.organization, |cx| Ok(cx.tx.forget_import(cx.organization, import_ref)?))
    }

    /// Returns the results so far.
    pub const fn summary(&self) -> &ImportSummary {
        &self.summary
    }

    fn count(&mut self, known_by: Option<&FileEventKey>, taken: EventOutcome, before: &DocumentSnapshot) -> UseCaseResult<()> {
        let taken = match (taken, known_by) {
            (EventOutcome::Recorded(view), Some(FileEventKey::Own(key))) if self.is_dry_run() => {
                let (tried, facts) = ((view.customer_ref.clone(), key.clone()), facts_of(&view.event));
                match self.tried.insert(tried.clone(), facts) {
                    None => EventOutcome::Recorded(view),
                    Some(before) if before == facts => EventOutcome::Before,
                    Some(_) if self.on_conflict == OnConflict::Update => EventOutcome::Updated(view),
                    Some(before) => {
                        self.tried.insert(tried, before);
                        return Err(UseCaseError::EventChanged(None));
                    }
                }
            }
            (taken, _) => taken,
        };
        if matches!(known_by, Some(FileEventKey::Line(_))) && !matches!(taken, EventOutcome::Copy | EventOutcome::Skipped) {
            self.summary.known_by_line += 1;
        }
        match taken {
            EventOutcome::Skipped => self.summary.skipped += 1,
            EventOutcome::Before | EventOutcome::Copy => self.summary.already_there += 1,
            EventOutcome::Recorded(view) => {
                self.summary.recorded += 1;
                self.touch(&view, before);
            }
            EventOutcome::Updated(view) => {
                self.summary.updated += 1;
                self.touch(&view, before);
            }
        }
        Ok(())
    }

    fn touch(&mut self, view: &EventView, before: &DocumentSnapshot) {
        let placement = &view.event.placement;
        let is_there = !self.is_dry_run() || before.there.contains(&placement.document_ref);
        let number = view.document_numbers.as_slice().last().filter(|_| is_there);
        let document = number.map(|number| (placement.document_ref, number.clone()));
        let place = match &document {
            Some((document_ref, _)) => AffectedDocumentKey::Document(*document_ref),
            None if view.parent.is_some() => AffectedDocumentKey::ToBeOpenedFor(view.event.event_ref),
            None => AffectedDocumentKey::ToBeOpened(placement.contract_ref, placement.service_period.start()),
        };
        let documents = &mut self.summary.documents;
        let index = *self.places.entry(place).or_insert(documents.len());
        if index == documents.len() {
            documents.push(AffectedDocument {
                document,
                customer_ref: view.customer_ref.clone(),
                currency: view.currency,
                events: 0,
                total: before.totals.get(&placement.document_ref).copied(),
            });
        }
        documents[index].events += 1;
    }

    /// Executes a dry run of events and compares the documents that would change.
    fn rehearse(
        &mut self,
        transactions: &mut Transactions<'_, '_>,
        events: &[NewUsageEvent],
    ) -> UseCaseResult<(Vec<UseCaseResult<IngestOutcome>>, DocumentSnapshot)> {
        let organization = self.organization;
        let is_whole = self.slices == 0;
        let (mut first, mut after) = (BTreeMap::new(), BTreeMap::new());
        // The inspector rolls the events back, so documents that they open don't exist afterwards.
        let (results, before) = transactions.write(organization, |cx| {
            let results = dry_run_usage(cx, events, &mut |cx, results| {
                if is_whole {
                    first = first_documents(results);
                    after = totals(cx, &first)?;
                }
                Ok(())
            })?;
            let there = self.there(cx.tx, organization, &results)?;
            first.retain(|document_ref, _| there.contains(document_ref));
            let mut before = totals(cx, &first)?;
            let changed = |(document_ref, after)| (document_ref, ChangedTotal { before: before.remove(&document_ref), after });
            let totals = std::mem::take(&mut after).into_iter().map(changed).collect();
            Ok::<_, UseCaseError>((results, DocumentSnapshot { totals, there }))
        })?;
        // Count a batch only after it succeeds, because a failed batch may be retried.
        self.count_slice();
        Ok((results, before))
    }

    /// Counts a batch of a dry run.
    fn count_slice(&mut self) {
        self.slices += 1;
        if self.slices > 1 {
            self.clear_totals();
        }
    }

    fn clear_totals(&mut self) {
        for document in &mut self.summary.documents {
            document.total = None;
        }
    }

    /// Returns the documents of dry-run events that exist.
    fn there(
        &self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        results: &[UseCaseResult<IngestOutcome>],
    ) -> UseCaseResult<BTreeSet<DocumentRef>> {
        let (customers, touched): (BTreeSet<CustomerId>, BTreeSet<DocumentRef>) = placed(results).unzip();
        let customers = Vec::from_iter(customers);
        let known = |document_ref: &&DocumentRef| self.places.contains_key(&AffectedDocumentKey::Document(**document_ref));
        let unknown: Vec<DocumentRef> = touched.iter().filter(|document_ref| !known(document_ref)).copied().collect();
        let mut there: BTreeSet<DocumentRef> = touched.iter().filter(known).copied().collect();
        if !unknown.is_empty() {
            let found = tx.book_documents_by_refs(organization, &customers, &unknown)?;
            there.extend(found.into_iter().map(|document| document.head.document_ref));
        }
        Ok(there)
    }

    /// Returns a rejection with a message that suits the author of the file.
    fn explained(&self, known_by: Option<&FileEventKey>, refusal: UseCaseError) -> UseCaseError {
        match refusal {
            UseCaseError::EventChanged(event_ref) if matches!(known_by, Some(FileEventKey::Line(_))) => {
                UseCaseError::LineChanged(event_ref)
            }
            refusal if self.format.is_default() => refusal,
            refusal => of_mapped(refusal),
        }
    }
}

/// Returns the facts of a recorded event.
fn facts_of(event: &UsageEvent) -> FactsDigest {
    let product = NamedUsageProduct::Ref(event.usage_product_ref.clone());
    FactsDigest::of(Some(event.occurred_at), &product, event.quantity, event.report_data.as_ref())
}

/// Returns the customers and documents of the events that were recorded or updated now.
fn placed(results: &[UseCaseResult<IngestOutcome>]) -> impl Iterator<Item = (CustomerId, DocumentRef)> + '_ {
    results.iter().filter_map(|result| match result {
        Ok(IngestOutcome::Recorded(view) | IngestOutcome::Updated(view)) => {
            Some((view.event.customer_id, view.event.placement.document_ref))
        }
        Ok(IngestOutcome::Replayed(_)) | Err(_) => None,
    })
}

/// Returns the first documents that carry events, with their customers.
fn first_documents(results: &[UseCaseResult<IngestOutcome>]) -> BTreeMap<DocumentRef, CustomerId> {
    let mut first = BTreeMap::new();
    for (customer, document_ref) in placed(results) {
        if first.len() < MAX_TOTALS {
            first.insert(document_ref, customer);
        }
    }
    first
}

/// Returns the totals of documents.
fn totals(cx: &mut Cx<'_>, documents: &BTreeMap<DocumentRef, CustomerId>) -> UseCaseResult<BTreeMap<DocumentRef, Money>> {
    if documents.is_empty() {
        return Ok(BTreeMap::new());
    }
    let customers: BTreeSet<CustomerId> = documents.values().copied().collect();
    let refs: Vec<DocumentRef> = documents.keys().copied().collect();
    let found = cx.tx.documents_by_refs(cx.organization, &Vec::from_iter(customers), &refs)?;
    let views = view_all(cx.tx, cx.organization, found, cx.now)?.into_iter();
    Ok(views.filter_map(|view| Some((view.opened?.document_ref, view.content.total))).collect())
}

/// Returns the existing events to which file lines refer.
fn copies(
    transactions: &mut Transactions<'_, '_>,
    organization: OrganizationId,
    events: &[FileEvent],
) -> UseCaseResult<BTreeSet<EventRef>> {
    let named: BTreeSet<EventRef> = events.iter().filter_map(event_ref_of).collect();
    if named.is_empty() {
        return Ok(named);
    }
    transactions.read(|tx| Ok(tx.known_events(organization, &Vec::from_iter(named.clone()))?))
}

fn event_ref_of(event: &FileEvent) -> Option<EventRef> {
    EventRef::parse(event.event_ref.as_ref()?).ok()
}

fn unknown_event() -> UseCaseError {
    let detail = "must be the reference of an existing event, which is not recorded again: omit it to record a new event";
    Violations::one(&["event_ref"], UNKNOWN_REFERENCE, detail).into()
}
