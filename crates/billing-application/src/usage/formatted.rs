//! Formatted mode: free-form events, processed by a usage format and then taken like any other. The event as submitted
//! and the format's version stay with what was made of them.

use billing_domain::access::Principal;
use billing_domain::event_input::{EventUpdate, NewUsageEvent};
use billing_domain::format::{MappedEvent, UsageFormat};
use billing_domain::patch::Patch;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::EventRef;
use billing_domain::usage::{EventKey, FormattedSource, UsageEvent};
use billing_domain::violation::Violations;

use super::change::live_event;
use crate::book_repository::corrupt;
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::formats::{NamedFormat, find_format, newest_of};
use crate::{Services, UseCase, allow};

/// A free-form event to take.
#[derive(Clone, Debug)]
pub struct FormattedEvent {
    /// What processes it.
    pub format: NamedFormat,
    /// The text of a JSON object.
    pub event: String,
    /// The key it was sent with, by which repeats are known.
    pub sent: Option<EventKey>,
}

/// A free-form event that takes another's place.
#[derive(Clone, Debug)]
pub struct FormattedUpdate {
    /// Which event is changed.
    pub event_ref: EventRef,
    /// What processes the new one; without it, the newest version of the format that processed the one before.
    pub format: Option<NamedFormat>,
    /// The text of a JSON object.
    pub event: String,
}

/// The event that a format makes of a free-form one; stores nothing.
///
/// # Errors
/// [`UseCaseError::FormatFailed`]; [`UseCaseError::Invalid`] where there is no such format.
pub fn map_formatted(services: &Services, principal: &Principal, report: &FormattedEvent) -> UseCaseResult<NewUsageEvent> {
    let organization = allow(principal, UseCase::RecordUsage)?;
    let format = transact(&*services.store, Access::Read, |tx| find_format(tx, organization, &report.format))?;
    Ok(NewUsageEvent { sent: report.sent.clone(), ..map_event(services, &format, &report.event)? })
}

/// What a format makes of free-form events, each or why it doesn't fit; stores nothing.
///
/// # Errors
/// [`UseCaseError::Invalid`] where there is no such format; for each event [`UseCaseError::FormatFailed`].
pub fn map_events(
    services: &Services,
    principal: &Principal,
    format: &NamedFormat,
    events: &[&str],
) -> UseCaseResult<Vec<UseCaseResult<NewUsageEvent>>> {
    let organization = allow(principal, UseCase::RecordUsage)?;
    let format = transact(&*services.store, Access::Read, |tx| find_format(tx, organization, format))?;
    Ok(events.iter().map(|event| map_event(services, &format, event)).collect())
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
        sent: None,
        import: None,
    })
}

/// The update that a format makes of a free-form event in another's place: timestamp, quantity, report data and checks are
/// those of the new one alone. Stores nothing.
///
/// # Errors
/// As [`map_formatted`], and [`UseCaseError::Unknown`]; [`UseCaseError::Invalid`] without a format, of an event that no format
/// ever processed.
pub fn map_update(services: &Services, principal: &Principal, update: &FormattedUpdate) -> UseCaseResult<EventUpdate> {
    let organization = allow(principal, UseCase::UpdateEvent)?;
    let format = transact(&*services.store, Access::Read, |tx| {
        let present = live_event(tx, principal, update.event_ref)?;
        if let Some(named) = &update.format {
            return find_format(tx, organization, named);
        }
        // An ordinary update has none; the revision before it may.
        let before = match present.formatted {
            Some(source) => source,
            None => latest_source(tx.superseded_revisions(organization, &[present.customer_id], &[update.event_ref])?)?,
        };
        newest_of(tx, organization, &before.format_ref)?
            .ok_or_else(|| corrupt("an event", &update.event_ref, "names a format that is not there"))
    })?;
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

/// How the latest revision that a format made came in.
fn latest_source(superseded: Vec<UsageEvent>) -> UseCaseResult<FormattedSource> {
    superseded.into_iter().rev().find_map(|revision| revision.formatted).ok_or_else(|| {
        let detail = "must be given, or format_ref, because no format has processed the event before";
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

/// What is refused of a mapped event stands in no field of the request.
pub fn of_mapped(error: UseCaseError) -> UseCaseError {
    match error {
        UseCaseError::Invalid(_) | UseCaseError::NoMatch(_) => UseCaseError::Mapped(Box::new(error)),
        other => other,
    }
}
