//! Files of usage events, whichever way they come in: each event is taken once, what was taken is summed up, and the import is kept as
//! it is told afterwards.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::event_input::{FileEvent, FileEventKey, NewUsageEvent};
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::imports::{ImportRecord, ImportedDocument, ImportedFileFacts, MAX_IMPORT_DOCUMENTS};
use billing_domain::money::{Currency, Money};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerId, CustomerRef, DocumentRef, EventRef, ImportRef, OrganizationId};
use billing_domain::violation::Violations;

use super::batch::BatchOutcome;
use super::formatted::{map_events, of_mapped};
use super::ingest::IngestOutcome;
use super::read::EventView;
use super::record::dry_run_usage;
use crate::audit::{AuditChange, AuditContext, AuditSubject, ImportFileSummary, record_audit_event};
use crate::documents::view_all;
use crate::error::{UNKNOWN_REFERENCE, UseCaseError, UseCaseResult};
use crate::formats::NamedFormat;
use crate::{Services, UseCase, allow};

/// Documents of which a dry run says what they come to: each is made for it.
const MAX_TOTALS: usize = 100;

/// A file that is being taken, slice by slice.
#[derive(Debug)]
pub struct FileImport {
    format: NamedFormat,
    /// None of a dry run.
    import_ref: Option<ImportRef>,
    summary: ImportSummary,
    places: HashMap<AffectedDocumentKey, usize>,
    /// What a dry run would have kept by now: keys of events, by customer.
    tried: BTreeMap<(CustomerRef, IdempotencyKey), BodyHash>,
    /// Slices of events that a dry run has taken. What documents come to is only known of a file that is one.
    slices: usize,
}

/// What became of the events of a file, without those that were refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Events that were recorded, or would be in a dry run.
    pub recorded: u64,
    /// Events that were recorded before, with nothing recorded now.
    pub already_there: u64,
    /// How many of both are known by the file's name and their lines alone.
    pub known_by_line: u64,
    /// The documents that the recorded events went on, in the order in which they were met.
    pub documents: Vec<AffectedDocument>,
}

/// A document that events of a file went on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AffectedDocument {
    /// Reference and number; `None` in a dry run, of what would be opened for a period.
    pub document: Option<(DocumentRef, DocumentNumber)>,
    /// Whose it is.
    pub customer_ref: CustomerRef,
    /// Its currency.
    pub currency: Currency,
    /// How many events went on it.
    pub events: u64,
    /// What it comes to, in a dry run of a file that is tried as a whole; only of the first 100.
    pub total: Option<ChangedTotal>,
}

/// What a document comes to, before and after its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedTotal {
    /// With tax, as it is; `None` of what would be opened.
    pub before: Option<Money>,
    /// With tax, as it would be.
    pub after: Money,
}

impl AffectedDocument {
    /// As it is told afterwards.
    fn kept(&self) -> Option<ImportedDocument> {
        let (document_ref, number) = self.document.clone()?;
        let (customer_ref, currency, events) = (self.customer_ref.clone(), self.currency, self.events);
        Some(ImportedDocument { document_ref, number, customer_ref, currency, events })
    }
}

/// What became of lines of a file besides their events.
#[derive(Debug, Default)]
pub struct ImportChunkResult {
    /// Those that are refused, and why.
    pub refused: Vec<(u64, UseCaseError)>,
    /// The first that wasn't taken, nor the lines after it, and why.
    pub stopped: Option<(u64, UseCaseError)>,
}

/// What tells touched documents apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum AffectedDocumentKey {
    Document(DocumentRef),
    /// What a dry run would open has another reference with every slice.
    ToBeOpened(ContractRef, Date),
    /// The same of an event that has a document of its own.
    ToBeOpenedFor(EventRef),
}

/// What a dry run knows of documents before its events.
#[derive(Debug, Default)]
struct DocumentSnapshot {
    /// Those that are there.
    there: BTreeSet<DocumentRef>,
    /// What the first come to, now and then.
    totals: BTreeMap<DocumentRef, ChangedTotal>,
}

/// What became of an event.
enum EventOutcome {
    Recorded(Box<EventView>),
    /// It was recorded before, under its key.
    Before,
    /// It is a copy of one that is there.
    Copy,
}

impl FileImport {
    /// An import of a file by a format, which is kept before any event is taken. A dry run does the same work and stores nothing.
    ///
    /// # Errors
    /// [`UseCaseError::Store`].
    pub fn begin(
        services: &Services,
        principal: &Principal,
        format: NamedFormat,
        file: ImportedFileFacts,
        dry_run: bool,
    ) -> UseCaseResult<Self> {
        let organization = allow(principal, UseCase::RecordUsage)?;
        let import_ref = (!dry_run).then(|| ImportRef::from_uuid(services.ids.new_id()));
        if let Some(import_ref) = import_ref {
            let doer = AuditContext::of(principal);
            let import = ImportRecord::begun(import_ref, file, doer.author, doer.request_id.cloned(), services.now());
            transact(&*services.store, Access::Write, |tx| Ok::<_, UseCaseError>(tx.put_import(organization, &import)?))?;
        }
        let summary = ImportSummary::default();
        Ok(Self { format, import_ref, summary, places: HashMap::new(), tried: BTreeMap::new(), slices: 0 })
    }

    /// What the import is known by; none of a dry run.
    pub const fn import_ref(&self) -> Option<ImportRef> {
        self.import_ref
    }

    const fn is_dry_run(&self) -> bool {
        self.import_ref.is_none()
    }

    /// Takes events of the file as `record` does, which may take fewer than it is given. Answers those that are refused, in the
    /// order given, each by its line, and where it stopped.
    ///
    /// # Errors
    /// [`UseCaseError::Invalid`] where there is no such format; what stops all of them. Then none of the events was taken, and
    /// they may be given again.
    pub fn take(
        &mut self,
        services: &Services,
        principal: &Principal,
        events: &[FileEvent],
        record: &mut dyn FnMut(Vec<NewUsageEvent>) -> UseCaseResult<BatchOutcome>,
    ) -> UseCaseResult<ImportChunkResult> {
        let there = copies(services, principal, events)?;
        let is_copy = |event: &FileEvent| event_ref_of(event).is_some_and(|event_ref| there.contains(&event_ref));
        let mut outcomes: Vec<Option<UseCaseResult<EventOutcome>>> = Vec::with_capacity(events.len());
        for event in events {
            outcomes.push(match &event.event_ref {
                Some(_) if is_copy(event) => Some(Ok(EventOutcome::Copy)),
                // In other formats a field of that name may be anything.
                Some(_) if self.format.is_built_in() => Some(Err(unknown_event())),
                Some(_) | None => None,
            });
        }
        let fresh: Vec<usize> = (0..events.len()).filter(|index| outcomes[*index].is_none()).collect();
        let texts: Vec<&str> = fresh.iter().map(|index| events[*index].event.as_str()).collect();
        let (mut indices, mut new_events) = (Vec::with_capacity(fresh.len()), Vec::with_capacity(fresh.len()));
        for (index, mapped) in fresh.into_iter().zip(map_events(services, principal, &self.format, &texts)?) {
            match mapped {
                Ok(mapped) => {
                    let sent = events[index].known_by.as_ref().map(|key| key.sent().clone());
                    indices.push(index);
                    new_events.push(NewUsageEvent { sent, import: self.import_ref, ..mapped });
                }
                Err(refusal) => outcomes[index] = Some(Err(refusal)),
            }
        }
        let (BatchOutcome { results, mut stopped_by }, before) = if self.is_dry_run() {
            let (results, before) = self.rehearse(services, principal, &new_events)?;
            (BatchOutcome { results, stopped_by: None }, before)
        } else {
            (record(new_events)?, DocumentSnapshot::default())
        };
        for (index, result) in indices.into_iter().zip(results) {
            outcomes[index] = Some(match result {
                Ok(IngestOutcome::Recorded(view)) => Ok(EventOutcome::Recorded(view)),
                Ok(IngestOutcome::Replayed(_)) => Ok(EventOutcome::Before),
                Err(refusal) => Err(refusal),
            });
        }
        let mut lines = ImportChunkResult::default();
        for (event, outcome) in events.iter().zip(outcomes) {
            let none = || Err(stopped_by.take().unwrap_or(UseCaseError::InvariantViolation("an event without an outcome")));
            match outcome.unwrap_or_else(none).and_then(|taken| self.count(event, taken, &before)) {
                Ok(()) => {}
                Err(error @ (UseCaseError::Store(_) | UseCaseError::InvariantViolation(_))) => {
                    lines.stopped = Some((event.line, error));
                    break;
                }
                Err(refusal) => lines.refused.push((event.line, self.told(event, refusal))),
            }
        }
        Ok(lines)
    }

    /// Keeps what became of the file, with the line that it stopped at where it did, and tells the audit log, unless nothing of it was
    /// recorded. To be called after its last events, which tell themselves what became of them.
    ///
    /// # Errors
    /// [`UseCaseError::Store`].
    pub fn end(&self, services: &Services, principal: &Principal, refused: u64, stopped_at: Option<u64>) -> UseCaseResult<()> {
        let organization = allow(principal, UseCase::RecordUsage)?;
        let Some(import_ref) = self.import_ref else { return Ok(()) };
        let documents = self.summary.documents.iter().filter_map(AffectedDocument::kept);
        let documents: Vec<ImportedDocument> = documents.take(MAX_IMPORT_DOCUMENTS).collect();
        let more_documents = (self.summary.documents.len() - documents.len()) as u64;
        transact(&*services.store, Access::Write, |tx| {
            // It may have been undone in part meanwhile.
            let Some(present) = tx.hold_import(organization, import_ref)? else { return Ok(()) };
            let import = ImportRecord {
                ended_at: Some(services.now()),
                stopped_at,
                recorded: self.summary.recorded,
                already_there: self.summary.already_there,
                refused,
                documents: documents.clone(),
                more_documents,
                ..present
            };
            tx.put_import(organization, &import)?;
            if self.summary.recorded == 0 {
                return Ok(());
            }
            let file = ImportFileSummary { name: import.file.name.clone(), import_ref, taken: self.summary.clone(), refused };
            record_audit_event(
                tx,
                services,
                AuditContext::of(principal),
                AuditAction::Import,
                AuditChange::Made(AuditSubject::UsageFile(&file)),
            )
        })
    }

    /// Forgets an import of which nothing was taken.
    ///
    /// # Errors
    /// [`UseCaseError::Store`].
    pub fn discard(&self, services: &Services, principal: &Principal) -> UseCaseResult<()> {
        let organization = allow(principal, UseCase::RecordUsage)?;
        let Some(import_ref) = self.import_ref else { return Ok(()) };
        transact(&*services.store, Access::Write, |tx| Ok(tx.forget_import(organization, import_ref)?))
    }

    /// What became of the events so far.
    pub const fn summary(&self) -> &ImportSummary {
        &self.summary
    }

    fn count(&mut self, event: &FileEvent, taken: EventOutcome, before: &DocumentSnapshot) -> UseCaseResult<()> {
        let taken = match (taken, &event.known_by) {
            (EventOutcome::Recorded(view), Some(FileEventKey::Own(sent))) if self.is_dry_run() => {
                match self.tried.insert((view.customer_ref.clone(), sent.key.clone()), sent.body) {
                    None => EventOutcome::Recorded(view),
                    Some(body) if body == sent.body => EventOutcome::Before,
                    Some(body) => {
                        self.tried.insert((view.customer_ref.clone(), sent.key.clone()), body);
                        return Err(UseCaseError::IdempotencyKeyReuse);
                    }
                }
            }
            (taken, _) => taken,
        };
        if matches!(event.known_by, Some(FileEventKey::Line(_))) && !matches!(taken, EventOutcome::Copy) {
            self.summary.known_by_line += 1;
        }
        match taken {
            EventOutcome::Before | EventOutcome::Copy => self.summary.already_there += 1,
            EventOutcome::Recorded(view) => {
                self.summary.recorded += 1;
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

    /// Takes events of a dry run, and looks at the documents that they would go on.
    fn rehearse(
        &mut self,
        services: &Services,
        principal: &Principal,
        events: &[NewUsageEvent],
    ) -> UseCaseResult<(Vec<UseCaseResult<IngestOutcome>>, DocumentSnapshot)> {
        let (organization, now) = (allow(principal, UseCase::RecordUsage)?, services.now());
        let is_whole = self.slices == 0;
        let (mut first, mut after) = (BTreeMap::new(), BTreeMap::new());
        let results = dry_run_usage(services, principal, events, &mut |tx, results| {
            if is_whole {
                first = first_documents(results);
                after = totals(tx, organization, &first, now)?;
            }
            Ok(())
        })?;
        // Now that what would have been opened is gone again.
        let before = transact(&*services.store, Access::Read, |tx| -> UseCaseResult<_> {
            let there = self.there(tx, organization, &results)?;
            first.retain(|document_ref, _| there.contains(document_ref));
            let mut before = totals(tx, organization, &first, now)?;
            let changed = |(document_ref, after)| (document_ref, ChangedTotal { before: before.remove(&document_ref), after });
            Ok(DocumentSnapshot { totals: std::mem::take(&mut after).into_iter().map(changed).collect(), there })
        })?;
        // One that fails may be taken again.
        self.slices += 1;
        if !is_whole {
            for document in &mut self.summary.documents {
                document.total = None;
            }
        }
        Ok((results, before))
    }

    /// Those of the documents of tried events that are there.
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

    /// A refusal in words that help who has the file.
    fn told(&self, event: &FileEvent, refusal: UseCaseError) -> UseCaseError {
        match refusal {
            UseCaseError::IdempotencyKeyReuse if matches!(event.known_by, Some(FileEventKey::Line(_))) => {
                let detail = "this line of a file of that name was imported before and said something else: change the event it \
                              made, or give another file another name";
                UseCaseError::Conflict { code: "line_changed", detail: detail.to_owned() }
            }
            refusal if self.format.is_built_in() => refusal,
            refusal => of_mapped(refusal),
        }
    }
}

/// Whose events were taken now, and the documents that they are on.
fn placed(results: &[UseCaseResult<IngestOutcome>]) -> impl Iterator<Item = (CustomerId, DocumentRef)> + '_ {
    results.iter().filter_map(|result| match result {
        Ok(IngestOutcome::Recorded(view)) => Some((view.event.customer_id, view.event.placement.document_ref)),
        Ok(IngestOutcome::Replayed(_)) | Err(_) => None,
    })
}

/// The first documents that events are on, with whose they are.
fn first_documents(results: &[UseCaseResult<IngestOutcome>]) -> BTreeMap<DocumentRef, CustomerId> {
    let mut first = BTreeMap::new();
    for (customer, document_ref) in placed(results) {
        if first.len() < MAX_TOTALS {
            first.insert(document_ref, customer);
        }
    }
    first
}

/// What documents come to.
fn totals(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    documents: &BTreeMap<DocumentRef, CustomerId>,
    now: Timestamp,
) -> UseCaseResult<BTreeMap<DocumentRef, Money>> {
    if documents.is_empty() {
        return Ok(BTreeMap::new());
    }
    let customers: BTreeSet<CustomerId> = documents.values().copied().collect();
    let refs: Vec<DocumentRef> = documents.keys().copied().collect();
    let found = tx.documents_by_refs(organization, &Vec::from_iter(customers), &refs)?;
    let views = view_all(tx, organization, found, now)?.into_iter();
    Ok(views.filter_map(|view| Some((view.opened?.document_ref, view.content.total))).collect())
}

/// Which of the events that files say to be copies are there.
fn copies(services: &Services, principal: &Principal, events: &[FileEvent]) -> UseCaseResult<BTreeSet<EventRef>> {
    let organization = allow(principal, UseCase::RecordUsage)?;
    let said: BTreeSet<EventRef> = events.iter().filter_map(event_ref_of).collect();
    if said.is_empty() {
        return Ok(said);
    }
    transact(&*services.store, Access::Read, |tx| Ok(tx.known_events(organization, &Vec::from_iter(said.clone()))?))
}

fn event_ref_of(event: &FileEvent) -> Option<EventRef> {
    EventRef::parse(event.event_ref.as_ref()?).ok()
}

fn unknown_event() -> UseCaseError {
    let detail = "must be the reference of an existing event, which isn't recorded again: leave it out to record a new event";
    Violations::one(&["event_ref"], UNKNOWN_REFERENCE, detail).into()
}
