//! Formatted mode: a usage format maps free-form events, which are then recorded like all others. Each event stores its
//! submitted text and the version of the format.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::event_input::{EventUpdate, MAX_RECORD_KEY_CHARS, NewUsageEvent, OnConflict};
use billing_domain::format::{FormatError, FormatTarget, MappedRecord, UsageFormat};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::patch::Patch;
use billing_domain::ports::Tx;
use billing_domain::refs::{EventRef, HoldRef, OrganizationId};
use billing_domain::usage::{FormattedSource, UsageEvent};
use billing_domain::violation::Violations;

use super::change::live_event;
use crate::book_repository::corrupt;
use crate::carry_out::read;
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::formats::{NamedFormat, find_format, newest_of, without_timestamp};
use crate::{Services, UseCase};

/// A free-form record to map.
#[derive(Clone, Debug)]
pub struct SentRecord {
    /// The text of a JSON object.
    pub event: String,
    /// The idempotency key of the request or the record, unless the format gives a key.
    pub key: Option<IdempotencyKey>,
    /// What happens to an event whose key has other facts.
    pub on_conflict: OnConflict,
    /// Whether the sender states that the usage has already happened.
    pub occurred: bool,
    /// The hold whose open entry each event ends.
    pub hold_ref: Option<HoldRef>,
    /// The timestamp of a CloudEvent that leaves out its time: the time of receipt. Other records must have a timestamp.
    pub time_of_receipt: Option<Timestamp>,
}

/// The events of a record, with the errors of single elements.
pub type RecordEvents = MappedRecord<NewUsageEvent, UseCaseError>;

/// A free-form event that replaces the content of an existing event.
#[derive(Clone, Debug)]
pub struct FormattedUpdate {
    /// The event to change.
    pub event_ref: EventRef,
    /// The format for the new content. Default: the newest version of the format that mapped the event before.
    pub format: Option<NamedFormat>,
    /// The text of a JSON object.
    pub event: String,
}

/// Finds the format of new events. Also returns the time of receipt, which the organization's clock gives.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the format does not exist.
pub fn format_of_events(
    services: &Services,
    principal: &Principal,
    format: &NamedFormat,
) -> UseCaseResult<(UsageFormat, Timestamp)> {
    read(services, principal, UseCase::RecordUsage, |cx| Ok((find_format(cx.tx, cx.organization, format)?, cx.now)))
}

/// Returns the events that a format creates from a record. Stores nothing. The evaluation takes up to 50 ms, so it must happen
/// outside of transactions.
///
/// # Errors
/// Returns [`UseCaseError::FormatFailed`] if the format cannot map the record.
pub fn map_record(services: &Services, format: &UsageFormat, record: &SentRecord) -> UseCaseResult<RecordEvents> {
    map_events(services, format, &record.event, record.time_of_receipt)?.try_map(|item, mapped| {
        let MappedUsage { event, key } = mapped?;
        let key = key_of_event(key, record.key.as_ref(), item)?;
        let (occurred, hold_ref) = (record.occurred, record.hold_ref.clone());
        Ok(NewUsageEvent { key, on_conflict: record.on_conflict, occurred, hold_ref, ..event })
    })
}

/// An event that a format creates, and the key that the format gives it.
pub(super) struct MappedUsage {
    pub(super) event: NewUsageEvent,
    pub(super) key: Option<IdempotencyKey>,
}

impl MappedUsage {
    /// Returns the record of an event in the default shape.
    pub(super) fn shaped(event: NewUsageEvent) -> MappedRecord<Self, UseCaseError> {
        MappedRecord::Event(Box::new(Self { event, key: None }))
    }
}

/// Returns the key of an event: the key of its format, else the key of its record. The elements of a record have different keys.
pub(super) fn key_of_event(
    of_format: Option<IdempotencyKey>,
    of_record: Option<&IdempotencyKey>,
    item: Option<usize>,
) -> UseCaseResult<Option<IdempotencyKey>> {
    match (of_format, of_record, item) {
        (Some(key), ..) => Ok(Some(key)),
        (None, Some(key), Some(item)) => {
            let key = IdempotencyKey::parse(&format!("{}#{item}", key.as_str())).map_err(|_| {
                let detail =
                    format!("must be at most {MAX_RECORD_KEY_CHARS} characters, because the format gives several events");
                Violations::one(&["idempotency_key"], "invalid_format", detail)
            })?;
            Ok(Some(key))
        }
        (None, key, _) => Ok(key.cloned()),
    }
}

/// Maps a record without its own key.
pub(super) fn map_events(
    services: &Services,
    format: &UsageFormat,
    event: &str,
    time_of_receipt: Option<Timestamp>,
) -> UseCaseResult<MappedRecord<MappedUsage, UseCaseError>> {
    apply(services, format, event)?.try_map(|_, mapped| {
        let mapped = mapped.map_err(failed)?;
        let occurred_at = mapped.timestamp.or(time_of_receipt).ok_or_else(|| failed(without_timestamp(&format.mapping)))?;
        let event = NewUsageEvent {
            customer: mapped.customer,
            usage_product: mapped.usage_product,
            occurred_at,
            is_time_of_receipt: mapped.timestamp.is_none(),
            quantity: mapped.quantity,
            report_data: mapped.report_data,
            validations: mapped.validations,
            formatted: Some(source_of(format, event)),
            key: None,
            on_conflict: OnConflict::Reject,
            occurred: false,
            hold_ref: None,
            import: None,
        };
        Ok(MappedUsage { event, key: mapped.idempotency_key })
    })
}

/// Returns the update that replaces an event's content with a free-form event. Timestamp, quantity, report data and
/// validations come from the new content only. Stores nothing.
///
/// # Errors
/// Returns one of these errors:
/// - Any error of [`map_record`], also if the format gives no event, or a list of events.
/// - [`UseCaseError::Unknown`] if the event does not exist.
/// - [`UseCaseError::Invalid`] if no format is given and no format ever mapped the event.
pub fn map_update(services: &Services, principal: &Principal, update: &FormattedUpdate) -> UseCaseResult<EventUpdate> {
    let format = read(services, principal, UseCase::UpdateEvent, |cx| format_of_update(cx.tx, cx.organization, update))?;
    let MappedRecord::Event(mapped) = apply(services, &format, &update.event)? else { return Err(no_single_event(&format)) };
    let occurred_at = mapped.timestamp.ok_or_else(|| failed(without_timestamp(&format.mapping)))?;
    Ok(EventUpdate {
        occurred_at: Some(occurred_at),
        quantity: Some(mapped.quantity),
        report_data: mapped.report_data.map_or(Patch::Clear, Patch::Set),
        validations: mapped.validations.map_or(Patch::Clear, Patch::Set),
        customer: Some(mapped.customer),
        usage_product: Some(mapped.usage_product),
        formatted: Some(source_of(&format, &update.event)),
    })
}

/// Returns the format for the new content of an event.
fn format_of_update(tx: &mut dyn Tx, organization: OrganizationId, update: &FormattedUpdate) -> UseCaseResult<UsageFormat> {
    let present = live_event(tx, organization, update.event_ref)?;
    if let Some(named) = &update.format {
        return find_format(tx, organization, named);
    }
    // An update without a format leaves this empty, but an earlier revision may have a format.
    let before = match present.formatted {
        Some(source) => source,
        None => latest_source(tx.superseded_revisions(organization, &[present.customer_id], &[update.event_ref])?)?,
    };
    newest_of(tx, organization, &before.format_ref)?
        .ok_or_else(|| corrupt("an event", &update.event_ref, "names a format that is not there"))
}

/// Returns the source of the latest revision that a format created.
fn latest_source(superseded: Vec<UsageEvent>) -> UseCaseResult<FormattedSource> {
    superseded.into_iter().rev().find_map(|revision| revision.formatted).ok_or_else(|| {
        let detail = "must be given (or format_ref), because the event was not reported with a format";
        Violations::one(&["format_name"], "required", detail).into()
    })
}

fn apply(services: &Services, format: &UsageFormat, event: &str) -> UseCaseResult<MappedRecord> {
    services.mapper.map(&format.mapping, event).map_err(failed)
}

fn failed(error: FormatError) -> UseCaseError {
    UseCaseError::FormatFailed { mapping: MappingOrigin::Stored, errors: vec![error] }
}

/// Returns the error of an update by a format that does not give one event.
fn no_single_event(format: &UsageFormat) -> UseCaseError {
    let (target, expression) = match &format.mapping.for_each {
        Some(list) => (FormatTarget::ForEach, Some(list)),
        None => (FormatTarget::SkipIf, format.mapping.skip_if.as_ref()),
    };
    let reason = "an update needs the content of one event: use a format that gives one, or delete the event";
    failed(FormatError { target, expression: expression.cloned(), position: None, reason: reason.to_owned() })
}

fn source_of(format: &UsageFormat, event: &str) -> FormattedSource {
    FormattedSource { format_ref: format.format_ref.clone(), format_version: format.version, raw_event: event.to_owned() }
}

/// Marks errors of a mapped event, because they do not refer to a field of the request.
pub fn of_mapped(error: UseCaseError) -> UseCaseError {
    match error {
        UseCaseError::Invalid(_) | UseCaseError::NoMatch(_) => UseCaseError::Mapped(Box::new(error)),
        other => other,
    }
}
