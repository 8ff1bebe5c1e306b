//! The lines of a file in one transaction: read, mapped to events, and rejected.

use std::sync::Arc;

use billing_domain::event_input::{FileEvent, FileEventKey, FileLine, NewUsageEvent, OnConflict};
use billing_domain::format::{MappedRecord, UsageFormat};
use billing_domain::idempotency::IdempotencyKey;

use super::formatted::{MappedUsage, key_of_event, map_events};
use super::read::EventView;
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// An event of a line that was not imported.
#[derive(Debug)]
pub struct RejectedLine {
    /// The number of the line.
    pub number: u64,
    /// The position in the line's list of elements, from 0. `None` if the format gives no list.
    pub item: Option<usize>,
    /// The source text.
    pub text: Arc<str>,
    /// The event as a JSON object. `None` if it cannot be parsed.
    pub event: Option<Arc<str>>,
    /// The reason.
    pub error: UseCaseError,
}

/// An event of a line that can't be recorded.
#[derive(Debug)]
pub struct RefusedLine {
    /// The number of the line.
    pub number: u64,
    /// The position in the line's list of elements, as in [`RejectedLine`].
    pub item: Option<usize>,
    /// The reason.
    pub error: UseCaseError,
}

/// The rejected and unprocessed lines of a transaction.
#[derive(Debug, Default)]
pub struct ImportChunkResult {
    /// Rejected events with their errors.
    pub refused: Vec<RefusedLine>,
    /// The first unprocessed line and its error. All later lines are unprocessed too.
    pub stopped: Option<(u64, UseCaseError)>,
    /// The number of processed lines. The others belong to the next transaction.
    pub lines: usize,
}

/// The lines that are read and not processed.
#[derive(Default)]
pub(super) struct FileChunk {
    /// The number of the last line.
    last: u64,
    pub(super) events: Vec<FileEvent>,
    /// The source text of each event.
    texts: Vec<Arc<str>>,
    /// The lines that cannot be parsed.
    unparsed: Vec<RejectedLine>,
}

impl FileChunk {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.unparsed.is_empty()
    }

    /// Adds lines until an error.
    pub(super) fn read<E>(&mut self, lines: &mut dyn Iterator<Item = Result<FileLine, E>>) -> Result<(), E> {
        for line in lines {
            let FileLine { number, text, event } = line?;
            self.last = number;
            match event {
                Ok(event) => {
                    self.events.push(event);
                    self.texts.push(text.into());
                }
                Err(violations) => {
                    let (item, text, error) = (None, text.into(), violations.into());
                    self.unparsed.push(RejectedLine { number, item, text, event: None, error });
                }
            }
        }
        Ok(())
    }

    /// Returns the number of the first line.
    pub(super) fn first_line(&self) -> Option<u64> {
        let event = self.events.first().map(|event| event.line);
        self.unparsed.first().map(|line| line.number).into_iter().chain(event).min()
    }

    /// Removes the processed lines. Returns the rejected ones in order, the last processed line, and the first line that was not
    /// processed. Later lines are not rejected, because they are reported when the file is sent again.
    pub(super) fn pass(&mut self, result: ImportChunkResult) -> (Vec<RejectedLine>, u64, Option<(u64, UseCaseError)>) {
        let ImportChunkResult { refused, stopped, lines } = result;
        let later = self.events.get(lines).map(|event| event.line);
        let last = later.map_or(self.last, |later| later.saturating_sub(1));
        let unparsed = self.unparsed.partition_point(|line| line.number <= last);
        let mut rejected: Vec<RejectedLine> = self.unparsed.drain(..unparsed).collect();
        let mut index = 0;
        let mut event: Option<Arc<str>> = None;
        for RefusedLine { number, item, error } in refused {
            let found = self.events.partition_point(|event| event.line < number);
            if found != index || event.is_none() {
                index = found;
                event = self.events.get_mut(index).map(|event| std::mem::take(&mut event.event).into());
            }
            let text = self.texts.get(index).cloned().unwrap_or_default();
            rejected.push(RejectedLine { number, item, text, event: event.clone(), error });
        }
        self.events.drain(..lines);
        self.texts.drain(..lines);
        rejected.retain(|line| stopped.as_ref().is_none_or(|(stopped, _)| line.number < *stopped));
        // The sort is stable, so that the elements of a line stay in order.
        rejected.sort_by_key(|line| line.number);
        (rejected, last, stopped)
    }
}

/// The result for an accepted event.
pub(super) enum EventOutcome {
    Recorded(Box<EventView>),
    /// It was recorded earlier and got other facts now.
    Updated(Box<EventView>),
    /// It was recorded earlier under its key.
    Before,
    /// It refers to an existing event.
    Copy,
    /// The format skips it.
    Skipped,
}

/// The result for a line, or for an element of its list.
pub(super) struct LineOutcome {
    /// The position of the line.
    pub(super) line: usize,
    pub(super) item: Option<usize>,
    /// The key of the event.
    pub(super) known_by: Option<FileEventKey>,
    /// `None` for an event to record.
    pub(super) result: Option<UseCaseResult<EventOutcome>>,
}

/// The mapped lines of a transaction.
#[derive(Default)]
pub(super) struct MappedLines {
    pub(super) outcomes: Vec<LineOutcome>,
    /// The events to record, each with the position of its outcome.
    pub(super) new_events: Vec<(usize, NewUsageEvent)>,
    /// The number of lines.
    pub(super) lines: usize,
    /// What happens to events whose own keys have other facts.
    on_conflict: OnConflict,
}

impl MappedLines {
    /// Maps the lines that are not decided, until the events fill a transaction of `most` events. All events of a line are in one
    /// transaction.
    pub(super) fn map(
        services: &Services,
        format: &UsageFormat,
        (events, decided): (&[FileEvent], Vec<Option<UseCaseResult<EventOutcome>>>),
        on_conflict: OnConflict,
        most: usize,
    ) -> Self {
        let mut mapped = Self { on_conflict, ..Self::default() };
        for (event, decided) in events.iter().zip(decided) {
            if mapped.new_events.len() >= most {
                break;
            }
            match decided {
                Some(result) => mapped.decide(None, event.known_by.clone(), Some(result)),
                None => {
                    let record = match &event.shaped {
                        Some(shaped) => shaped.clone().map(MappedUsage::shaped).map_err(UseCaseError::from),
                        None => map_events(services, format, &event.event, None),
                    };
                    let has_room = record.as_ref().map_or(0, MappedRecord::events) <= most - mapped.new_events.len();
                    if !has_room && !mapped.new_events.is_empty() {
                        break;
                    }
                    mapped.add(event, record);
                }
            }
            mapped.lines += 1;
        }
        mapped
    }

    fn decide(&mut self, item: Option<usize>, known_by: Option<FileEventKey>, result: Option<UseCaseResult<EventOutcome>>) {
        self.outcomes.push(LineOutcome { line: self.lines, item, known_by, result });
    }

    fn add(&mut self, line: &FileEvent, record: UseCaseResult<MappedRecord<MappedUsage, UseCaseError>>) {
        match record {
            Err(refusal) => self.decide(None, line.known_by.clone(), Some(Err(refusal))),
            Ok(MappedRecord::Skipped) => self.decide(None, None, Some(Ok(EventOutcome::Skipped))),
            Ok(MappedRecord::Event(event)) => self.add_event(line, None, Ok(*event)),
            Ok(MappedRecord::Elements(elements)) => {
                for (item, element) in elements.into_iter().enumerate() {
                    match element {
                        Ok(None) => self.decide(Some(item), None, Some(Ok(EventOutcome::Skipped))),
                        Ok(Some(event)) => self.add_event(line, Some(item), Ok(event)),
                        Err(refusal) => self.add_event(line, Some(item), Err(refusal)),
                    }
                }
            }
        }
    }

    fn add_event(&mut self, line: &FileEvent, item: Option<usize>, event: UseCaseResult<MappedUsage>) {
        let keyed = event.and_then(|MappedUsage { event, key }| Ok((event, known_by(line, key, item)?)));
        match keyed {
            Ok((event, known_by)) => {
                let on_conflict = match known_by {
                    // An inserted row would shift all lines.
                    Some(FileEventKey::Line(_)) => OnConflict::Reject,
                    Some(FileEventKey::Own(_)) | None => self.on_conflict,
                };
                let key = known_by.as_ref().map(|known_by| known_by.key().clone());
                self.new_events.push((self.outcomes.len(), NewUsageEvent { key, on_conflict, ..event }));
                self.decide(item, known_by, None);
            }
            Err(refusal) => self.decide(item, line.known_by.clone(), Some(Err(refusal))),
        }
    }
}

/// Returns the key of a line's event: the key of its format, else the key of the line.
fn known_by(line: &FileEvent, of_format: Option<IdempotencyKey>, item: Option<usize>) -> UseCaseResult<Option<FileEventKey>> {
    let is_by_line = of_format.is_none() && matches!(line.known_by, Some(FileEventKey::Line(_)));
    let key = key_of_event(of_format, line.known_by.as_ref().map(FileEventKey::key), item)?;
    Ok(key.map(if is_by_line { FileEventKey::Line } else { FileEventKey::Own }))
}
