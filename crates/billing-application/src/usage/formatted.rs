//! Formatted mode: a usage format maps free-form events, which are then recorded like all others. Each event stores its
//! submitted text and the version of the format.

use billing_domain::access::Principal;
use billing_domain::event_input::{EventUpdate, NewUsageEvent, OnConflict};
use billing_domain::format::{MappedEvent, UsageFormat};
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::patch::Patch;
use billing_domain::ports::Tx;
use billing_domain::refs::{EventRef, OrganizationId};
use billing_domain::usage::{FormattedSource, UsageEvent};
use billing_domain::violation::Violations;

use super::change::live_event;
use crate::book_repository::corrupt;
use crate::carry_out::{Transactions, read};
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::formats::{NamedFormat, find_format, newest_of};
use crate::{Services, UseCase};

/// A free-form event to record.
#[derive(Clone, Debug)]
pub struct FormattedEvent {
    /// The usage format that maps the event.
    pub format: NamedFormat,
    /// The text of a JSON object.
    pub event: String,
    /// The idempotency key, which identifies duplicates.
    pub key: Option<IdempotencyKey>,
    /// What happens if the key has other facts.
    pub on_conflict: OnConflict,
}

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

/// Returns the event that a format creates from a free-form event. Stores nothing.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::FormatFailed`] if the format cannot map the event.
/// - [`UseCaseError::Invalid`] if the format does not exist.
pub fn map_formatted(services: &Services, principal: &Principal, report: &FormattedEvent) -> UseCaseResult<NewUsageEvent> {
    // The evaluation takes up to 50 ms, so it happens outside of the transaction.
    let format = read(services, principal, UseCase::RecordUsage, |cx| find_format(cx.tx, cx.organization, &report.format))?;
    Ok(NewUsageEvent { key: report.key.clone(), on_conflict: report.on_conflict, ..map_event(services, &format, &report.event)? })
}

/// Maps free-form events with a format. Returns an event or an error for each. Stores nothing.
///
/// # Errors
/// Returns [`UseCaseError::Invalid`] if the format does not exist. A single event fails with [`UseCaseError::FormatFailed`].
pub(super) fn map_events(
    transactions: &mut Transactions<'_, '_>,
    organization: OrganizationId,
    format: &NamedFormat,
    events: &[&str],
) -> UseCaseResult<Vec<UseCaseResult<NewUsageEvent>>> {
    let format = transactions.read(|tx| find_format(tx, organization, format))?;
    Ok(events.iter().map(|event| map_event(transactions.services(), &format, event)).collect())
}

fn map_event(services: &Services, format: &UsageFormat, event: &str) -> UseCaseResult<NewUsageEvent> {
    let (mapped, formatted) = apply(services, format, event)?;
    Ok(NewUsageEvent {
        customer: mapped.customer,
        usage_product: mapped.usage_product,
        occurred_at: mapped.timestamp,
        quantity: mapped.quantity,
        report_data: mapped.report_data,
        validations: mapped.validations,
        formatted: Some(formatted),
        key: None,
        on_conflict: OnConflict::Reject,
        import: None,
    })
}

/// Returns the update that replaces an event's content with a free-form event. Timestamp, quantity, report data and
/// validations come from the new content only. Stores nothing.
///
/// # Errors
/// Returns one of these errors:
/// - Any error of [`map_formatted`].
/// - [`UseCaseError::Unknown`] if the event does not exist.
/// - [`UseCaseError::Invalid`] if no format is given and no format ever mapped the event.
pub fn map_update(services: &Services, principal: &Principal, update: &FormattedUpdate) -> UseCaseResult<EventUpdate> {
    let format = read(services, principal, UseCase::UpdateEvent, |cx| format_of_update(cx.tx, cx.organization, update))?;
    let (mapped, formatted) = apply(services, &format, &update.event)?;
    Ok(EventUpdate {
        occurred_at: Some(mapped.timestamp),
        quantity: Some(mapped.quantity),
        report_data: mapped.report_data.map_or(Patch::Clear, Patch::Set),
        validations: mapped.validations.map_or(Patch::Clear, Patch::Set),
        customer: Some(mapped.customer),
        usage_product: Some(mapped.usage_product),
        formatted: Some(formatted),
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

fn apply(services: &Services, format: &UsageFormat, event: &str) -> UseCaseResult<(MappedEvent, FormattedSource)> {
    let failed = |error| UseCaseError::FormatFailed { mapping: MappingOrigin::Stored, errors: vec![error] };
    let mapped = services.mapper.map(&format.mapping, event).map_err(failed)?;
    let source =
        FormattedSource { format_ref: format.format_ref.clone(), format_version: format.version, raw_event: event.to_owned() };
    Ok((mapped, source))
}

/// Marks errors of a mapped event, because they do not refer to a field of the request.
pub fn of_mapped(error: UseCaseError) -> UseCaseError {
    match error {
        UseCaseError::Invalid(_) | UseCaseError::NoMatch(_) => UseCaseError::Mapped(Box::new(error)),
        other => other,
    }
}
