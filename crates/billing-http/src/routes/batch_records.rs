//! The records of a batch: read in the default shape or by a usage format, and their results.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use billing_application::error::{EventPlace, UseCaseError, UseCaseResult};
use billing_application::formats::NamedFormat;
use billing_application::limits::CustomerLimits;
use billing_application::usage::{
    self, Atomicity, BatchOutcome, EVENTS_PER_TRANSACTION, IngestOutcome, MAX_BATCH_EVENTS, NewUsageEvent, SentRecord, UsageBatch,
};
use billing_domain::calendar::Timestamp;
use billing_domain::event_input::OnConflict;
use billing_domain::format::{MappedRecord, UsageFormat};
use billing_domain::idempotency::BodyHash;
use billing_domain::limit::LimitValue;
use billing_domain::refs::CustomerRef;
use billing_json::hash;
use serde_json::Value;

use crate::call::Call;
use crate::context::RequestContext;
use crate::refused::{RejectedEvent, SentEvents, is_refusal};
use billing_api::dto::batch::read_record;
use billing_api::dto::events::{EVENT_ANSWER, EventBody};
use billing_api::dto::wire::written;
use billing_api::problem::Problem;

/// Maximum number of errors that the response to a batch lists. Ten thousand small events can have tens of thousands.
const MAX_LISTED_ERRORS: usize = 1000;
/// The number of records that are mapped until others get their turn.
const RECORDS_PER_TURN: usize = 100;
/// The result of a record that the format skips.
const SKIPPED: &str = "null";

/// The events of a record, or its problem.
type RecordEvents = Result<MappedRecord<NewUsageEvent, Problem>, Problem>;

/// A reader of a batch's records, in the default shape or by a usage format.
#[derive(Clone)]
pub(crate) struct RecordReader {
    format: Option<Arc<UsageFormat>>,
    /// The time of receipt, if the records are CloudEvents.
    time_of_receipt: Option<Timestamp>,
    /// The format as the request names it.
    named: Option<NamedFormat>,
    on_conflict: OnConflict,
}

impl RecordReader {
    /// Creates the reader of a call. The built-in format is the default shape.
    ///
    /// # Errors
    /// Returns `unknown_format` if the format does not exist.
    pub(crate) async fn of(call: &Call, named: Option<NamedFormat>, on_conflict: OnConflict) -> Result<Self, Problem> {
        let Some(named) = named.filter(|named| !named.is_default()) else {
            return Ok(Self { format: None, time_of_receipt: None, named: None, on_conflict });
        };
        Ok(Self { time_of_receipt: None, ..Self::of_format(call, named, on_conflict).await? })
    }

    /// Creates the reader of a call that sends CloudEvents.
    ///
    /// # Errors
    /// Returns `unknown_format` if the format does not exist.
    pub(crate) async fn of_cloud_events(
        call: &Call,
        named: Option<NamedFormat>,
        on_conflict: OnConflict,
    ) -> Result<Self, Problem> {
        Self::of_format(call, named.unwrap_or_else(NamedFormat::cloud_events), on_conflict).await
    }

    async fn of_format(call: &Call, named: NamedFormat, on_conflict: OnConflict) -> Result<Self, Problem> {
        let wanted = named.clone();
        let (format, now) = call.run(move |services, principal| usage::format_of_events(services, principal, &wanted)).await?;
        Ok(Self { format: Some(Arc::new(format)), time_of_receipt: Some(now), named: Some(named), on_conflict })
    }

    /// Returns whether the records are CloudEvents.
    pub(crate) const fn is_of_cloud_events(&self) -> bool {
        self.time_of_receipt.is_some()
    }

    pub(crate) const fn is_of_format(&self) -> bool {
        self.format.is_some()
    }

    /// Returns the hash of a batch for its idempotency key. Another format makes another request.
    pub(crate) fn hash(&self, body: Value) -> BodyHash {
        match &self.named {
            None => hash(Some(&body)),
            Some(NamedFormat::Name(name)) => {
                hash(Some(&Value::from_iter([("format_name", name.as_str().into()), ("batch", body)])))
            }
            Some(NamedFormat::Ref(format)) => {
                hash(Some(&Value::from_iter([("format_ref", format.as_str().into()), ("batch", body)])))
            }
        }
    }

    /// Returns the reader of a body that can ask for updates, too.
    pub(crate) fn also(&self, on_conflict: OnConflict) -> Self {
        if on_conflict == OnConflict::Update { Self { on_conflict, ..self.clone() } } else { self.clone() }
    }

    /// Creates a batch of events in the default shape.
    pub(crate) fn of_events(
        &self,
        mut batch: Batch,
        events: impl Iterator<Item = Result<NewUsageEvent, Problem>>,
    ) -> ParsedBatch {
        let on_conflict = self.on_conflict;
        let record = |event| MappedRecord::Event(Box::new(NewUsageEvent { on_conflict, ..event }));
        events.for_each(|event| batch.add(event.map(record)));
        ParsedBatch { batch, records: Vec::new() }
    }

    /// Creates a batch of free-form events.
    pub(crate) fn of_records(&self, batch: Batch, records: impl Iterator<Item = Result<SentRecord, Problem>>) -> ParsedBatch {
        let Self { on_conflict, time_of_receipt, .. } = *self;
        let records = records.map(|record| record.map(|record| SentRecord { on_conflict, time_of_receipt, ..record })).collect();
        ParsedBatch { batch, records }
    }

    /// Reads lines into a batch.
    pub(crate) fn parse<V: Borrow<Value>>(&self, batch: Batch, values: impl Iterator<Item = Result<V, Problem>>) -> ParsedBatch {
        if self.is_of_format() {
            self.of_records(batch, values.map(|value| Ok(read_record(value?.borrow())?)))
        } else {
            self.of_events(batch, values.map(|value| Ok(EventBody::read_event(value?.borrow())?)))
        }
    }

    /// Maps the records of a parsed batch, until the batch is full. Other requests get their turn in between, because the
    /// evaluation of a record takes up to 50 ms.
    ///
    /// # Errors
    /// Returns `timed_out` after the request's deadline.
    pub(crate) async fn map(&self, call: &Call, parsed: ParsedBatch) -> Result<Batch, Problem> {
        let ParsedBatch { mut batch, records } = parsed;
        let Some(format) = &self.format else { return Ok(batch) };
        let (mut records, until) = (records.into_iter(), call.context.deadline.into_std());
        while records.len() > 0 && !batch.is_full {
            if Instant::now() >= until {
                return Err(Problem::timed_out());
            }
            let (part, format, state): (Vec<_>, _, _) =
                (records.by_ref().take(RECORDS_PER_TURN).collect(), Arc::clone(format), call.state.clone());
            // The size of the text says nothing about the time of the evaluation, so it counts as large.
            let mapped = call.parse(usize::MAX, move || {
                let map = |record: SentRecord| {
                    let mapped = usage::map_record(state.services(), &format, &record).map_err(Problem::of_listed)?;
                    mapped.try_map(|_, event| event.map_err(Problem::of_listed))
                };
                for record in part {
                    batch.add(record.and_then(map));
                }
                Ok(batch)
            });
            batch = mapped.await?;
        }
        Ok(batch)
    }
}

/// A batch whose text is parsed. The records of a format are not mapped yet.
pub(crate) struct ParsedBatch {
    batch: Batch,
    records: Vec<Result<SentRecord, Problem>>,
}

/// The events of the records read so far, and the places of their results.
pub(crate) struct Batch {
    events: Vec<NewUsageEvent>,
    places: Places,
    /// The maximum number of events.
    most: usize,
    /// Whether the events of a record did not fit. It and the later records are not part of the batch.
    is_full: bool,
    listed: ListedErrors,
}

/// The readable events of a batch, and the places of all results.
pub(crate) struct FinishedBatch {
    pub(crate) readable: UsageBatch,
    pub(crate) places: Places,
}

impl Batch {
    /// Creates an empty batch of at most `most` events. `listed` is the number of errors that the response can list.
    pub(crate) const fn of(
        facts: RequestContext,
        sent: SentEvents,
        reader: &RecordReader,
        most: usize,
        listed: ListedErrors,
    ) -> Self {
        let places = Places { records: Vec::new(), is_of_format: reader.is_of_format(), facts, sent };
        Self { events: Vec::new(), places, most, is_full: false, listed }
    }

    /// Adds the events of a record.
    fn add(&mut self, record: RecordEvents) {
        let events = record.as_ref().map_or(0, MappedRecord::events);
        self.is_full |= self.events.len() + events > self.most;
        if self.is_full {
            return;
        }
        // Errors that the response cannot list are dropped at once, because they would fill the memory.
        let (all, listed) = (&mut self.events, &mut self.listed);
        let mut fit = |problem: Problem| listed.fit(Cow::Owned(problem)).into_owned();
        let place = record.and_then(|record| record.try_map(|_, event| event.map(|event| all.push(event)).map_err(&mut fit)));
        self.places.records.push(place.map_err(fit));
    }

    /// Returns the whole batch.
    ///
    /// # Errors
    /// Returns `too_many_events` if a record did not fit, and the problems of unreadable events if the batch is atomic.
    pub(crate) fn finished(self, atomic: bool) -> Result<FinishedBatch, Problem> {
        if self.is_full {
            return Err(Problem::too_many_events(MAX_BATCH_EVENTS));
        }
        let FinishedBatch { readable, places } = self.cut();
        if !atomic {
            return Ok(FinishedBatch { readable, places });
        }
        let refused: Vec<(EventPlace, &Problem)> = places.problems().collect();
        if refused.is_empty() {
            return Ok(FinishedBatch { readable: UsageBatch { neighbours: Atomicity::Atomic, ..readable }, places });
        }
        let rejected = refused.iter().filter_map(|(place, problem)| Some(RejectedEvent::of(place.index?, problem)));
        places.sent.count(&rejected.collect::<Vec<_>>());
        Err(Problem::batch_refused(refused.into_iter().map(|(place, problem)| (place, problem.clone()))))
    }

    /// Returns the records that fit.
    pub(crate) fn cut(self) -> FinishedBatch {
        let Self { events, places, .. } = self;
        FinishedBatch { readable: UsageBatch { events, neighbours: Atomicity::PerEvent }, places }
    }
}

/// The results of events in order, and the problem of events without a result.
pub(crate) struct TakenEvents {
    pub(crate) results: Vec<UseCaseResult<IngestOutcome>>,
    pub(crate) untaken: Problem,
}

impl From<BatchOutcome> for TakenEvents {
    fn from(BatchOutcome { results, stopped_by }: BatchOutcome) -> Self {
        Self { results, untaken: stopped_by.map_or_else(Problem::internal, Problem::from) }
    }
}

/// The places of the results of a batch: for each record its readable events and its problems.
pub(crate) struct Places {
    records: Vec<Result<MappedRecord<(), Problem>, Problem>>,
    is_of_format: bool,
    facts: RequestContext,
    pub(crate) sent: SentEvents,
}

impl Places {
    /// Returns whether a record has a list of elements.
    pub(crate) fn has_elements(&self) -> bool {
        self.records.iter().any(|record| matches!(record, Ok(MappedRecord::Elements(_))))
    }

    /// Returns the numbers of events in transactions that are cut between records.
    pub(crate) fn pieces(&self) -> Vec<usize> {
        let mut pieces = vec![0];
        for events in self.records.iter().map(|record| record.as_ref().map_or(0, MappedRecord::events)) {
            match pieces.last_mut() {
                Some(last) if *last == 0 || *last + events <= EVENTS_PER_TRANSACTION => *last += events,
                _ => pieces.push(events),
            }
        }
        pieces
    }

    /// Returns the problems of unreadable events.
    fn problems(&self) -> impl Iterator<Item = (EventPlace, &Problem)> {
        self.records.iter().enumerate().flat_map(|(index, record)| {
            let place = EventPlace::in_batch(index);
            match record {
                Err(problem) => vec![(place, problem)],
                Ok(MappedRecord::Elements(elements)) => {
                    let of_items = elements.iter().enumerate();
                    of_items
                        .filter_map(|(item, found)| Some((EventPlace { item: Some(item), ..place }, found.as_ref().err()?)))
                        .collect()
                }
                Ok(MappedRecord::Skipped | MappedRecord::Event(_)) => Vec::new(),
            }
        })
    }

    /// Returns the places of the readable events.
    fn events(&self) -> impl Iterator<Item = EventPlace> {
        self.records.iter().enumerate().flat_map(|(index, record)| {
            let place = EventPlace::in_batch(index);
            match record {
                Ok(MappedRecord::Event(_)) => vec![place],
                Ok(MappedRecord::Elements(elements)) => {
                    let of_items = elements.iter().enumerate().filter(|(_, found)| matches!(found, Ok(Some(()))));
                    of_items.map(|(item, _)| EventPlace { item: Some(item), ..place }).collect()
                }
                Ok(MappedRecord::Skipped) | Err(_) => Vec::new(),
            }
        })
    }

    /// Returns the error of readable events with their places in the batch.
    pub(crate) fn placed(&self, error: UseCaseError) -> UseCaseError {
        let UseCaseError::EventsRefused(refused) = error else { return error };
        let places: Vec<EventPlace> = self.events().collect();
        let placed = refused.into_iter().map(|(place, error)| {
            let in_batch = place.index.and_then(|index| places.get(index)).copied().unwrap_or(place);
            (in_batch, if self.is_of_format { usage::of_mapped(error) } else { error })
        });
        UseCaseError::EventsRefused(placed.collect())
    }

    /// Renders the results.
    pub(crate) fn results(&self, taken: TakenEvents, listed: &mut ListedErrors) -> RenderedResults {
        let TakenEvents { results, untaken } = taken;
        let (outcomes, rejected) = (results.into_iter(), Vec::new());
        let mut writer = ResultWriter { places: self, outcomes, untaken, listed, rejected, left: BTreeMap::new() };
        let results = self.records.iter().enumerate().map(|(index, record)| writer.record(index, record)).collect();
        let left = writer.left.into_iter().map(|(customer_ref, limits)| CustomerLimits { customer_ref, limits: limits.to_vec() });
        RenderedResults { results, rejected: writer.rejected, left: left.collect() }
    }
}

/// The results of a batch.
pub(crate) struct RenderedResults {
    /// The JSON result of each record by position.
    pub(crate) results: Vec<String>,
    /// The rejected events, which the caller counts.
    pub(crate) rejected: Vec<RejectedEvent>,
    /// What is left of the limits of customers whose events were recorded.
    pub(crate) left: Vec<CustomerLimits>,
}

/// Renders the results of a batch in the order of its records.
struct ResultWriter<'p> {
    places: &'p Places,
    /// The outcomes of the readable events that are left.
    outcomes: std::vec::IntoIter<UseCaseResult<IngestOutcome>>,
    untaken: Problem,
    listed: &'p mut ListedErrors,
    rejected: Vec<RejectedEvent>,
    left: BTreeMap<CustomerRef, Arc<[LimitValue]>>,
}

impl ResultWriter<'_> {
    fn record(&mut self, index: usize, record: &Result<MappedRecord<(), Problem>, Problem>) -> String {
        match record {
            Err(problem) => self.problem(index, Cow::Borrowed(problem)),
            Ok(MappedRecord::Skipped) => SKIPPED.to_owned(),
            Ok(MappedRecord::Event(_)) => self.event(index),
            Ok(MappedRecord::Elements(elements)) => {
                let results = elements.iter().map(|element| match element {
                    Ok(None) => SKIPPED.to_owned(),
                    Ok(Some(())) => self.event(index),
                    Err(problem) => self.problem(index, Cow::Borrowed(problem)),
                });
                format!("[{}]", results.collect::<Vec<_>>().join(","))
            }
        }
    }

    fn event(&mut self, index: usize) -> String {
        match self.outcomes.next() {
            Some(Ok(IngestOutcome::Recorded(view) | IngestOutcome::Updated(view))) => {
                if !view.limits.is_empty() {
                    self.left.insert(view.customer_ref.clone(), Arc::clone(&view.limits));
                }
                (EVENT_ANSWER.render)(&view)
            }
            Some(Ok(IngestOutcome::Replayed(answer))) => answer,
            Some(Err(refusal)) if self.places.is_of_format => {
                self.problem(index, Cow::Owned(Problem::of_listed(usage::of_mapped(refusal))))
            }
            Some(Err(refusal)) => self.problem(index, Cow::Owned(Problem::from(refusal))),
            None => {
                let untaken = self.untaken.clone();
                self.problem(index, Cow::Owned(untaken))
            }
        }
    }

    fn problem(&mut self, index: usize, problem: Cow<'_, Problem>) -> String {
        if is_refusal(&problem) {
            self.rejected.push(RejectedEvent::of(index, &problem));
        }
        self.places.facts.problem(&self.listed.fit(problem))
    }
}

/// The number of errors that a response can still list. All errors of an event are listed, or none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListedErrors {
    left: usize,
}

impl Default for ListedErrors {
    fn default() -> Self {
        Self { left: MAX_LISTED_ERRORS }
    }
}

impl ListedErrors {
    /// Returns the next problem of the response. Once the errors of a problem do not fit, no later problem lists errors.
    fn fit<'p>(&mut self, problem: Cow<'p, Problem>) -> Cow<'p, Problem> {
        match self.left.checked_sub(problem.listed_errors().len()) {
            Some(left) => {
                self.left = left;
                problem
            }
            None => {
                self.left = 0;
                Cow::Owned(problem.into_owned().without_listed_errors())
            }
        }
    }
}

impl RequestContext {
    pub(crate) fn problem(&self, problem: &Problem) -> String {
        written(&problem.document(&self.path, &self.request_id))
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::violation::Violations;

    use super::*;

    /// Returns the problem of an event with this number of errors.
    fn problem(errors: usize) -> Problem {
        let mut all = Violations::none();
        for index in 0..errors {
            all.add(&[index.to_string().as_str()], "wrong_type", "must be a string");
        }
        all.into()
    }

    /// Returns the number of errors that a response lists for each problem.
    fn listed(errors: &[usize]) -> Vec<usize> {
        let mut listed = ListedErrors::default();
        errors.iter().map(|errors| listed.fit(Cow::Owned(problem(*errors))).listed_errors().len()).collect()
    }

    #[test]
    fn a_response_lists_a_thousand_errors_and_then_only_codes() {
        assert_eq!(listed(&[100; 12]), [[100; 10].as_slice(), &[0; 2]].concat());
        let errors = [[100; 9].as_slice(), &[99, 2, 1, 1]].concat();
        assert_eq!(listed(&errors), [[100; 9].as_slice(), &[99, 0, 0, 0]].concat());
        let counted = listed(&[4; 10_000]);
        assert_eq!((counted.iter().sum::<usize>(), counted.iter().filter(|listed| **listed > 0).count()), (1_000, 250));
    }

    #[test]
    fn problems_that_were_shortened_early_are_shortened_in_the_response_too() {
        let mut early = ListedErrors::default();
        let problems: Vec<_> = (0..20).map(|_| early.fit(Cow::Owned(problem(60))).into_owned()).collect();
        let mut late = ListedErrors::default();
        assert_eq!(late.fit(Cow::Owned(problem(90))).listed_errors().len(), 90);
        let listed: Vec<usize> = problems.iter().map(|problem| late.fit(Cow::Borrowed(problem)).listed_errors().len()).collect();
        assert_eq!(listed, [[60; 15].as_slice(), &[0; 5]].concat());
    }
}
