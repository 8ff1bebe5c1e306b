//! Tests formats on events without storing anything.

use billing_domain::access::Principal;
use billing_domain::format::{BuiltInFormat, FormatError, FormatMapping, MappedRecord};

use super::{NamedFormat, check, find_format, without_timestamp};
use crate::carry_out::{Cx, read};
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The format to test.
#[derive(Clone, Debug)]
pub enum TestedFormat {
    /// A mapping, which need not be stored.
    Mapping(Box<FormatMapping>),
    /// The newest version of a format.
    Named(NamedFormat),
}

/// Maps a record, given as the text of a JSON object. No element of the result is an error.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::FormatFailed`] with every invalid expression, or with the first field that cannot be mapped.
/// - [`UseCaseError::Invalid`] if the format does not exist.
pub fn test_format(
    services: &Services,
    principal: &Principal,
    tested: &TestedFormat,
    event: &str,
) -> UseCaseResult<MappedRecord> {
    allow(principal, UseCase::TestFormat)?;
    let (origin, mapping) = match tested {
        TestedFormat::Mapping(mapping) => {
            check(services, mapping)?;
            (MappingOrigin::Submitted, (**mapping).clone())
        }
        TestedFormat::Named(named) => {
            let find = |cx: &mut Cx<'_>| find_format(cx.tx, cx.organization, named);
            (MappingOrigin::Stored, read(services, principal, UseCase::TestFormat, find)?.mapping)
        }
    };
    // The evaluation takes up to 50 ms, so it happens outside of the transaction.
    let failed = |errors| UseCaseError::FormatFailed { mapping: origin, errors };
    // The format of CloudEvents is used for them only.
    let can_be_left_out = matches!(tested, TestedFormat::Named(named) if named.built_in() == Some(BuiltInFormat::CloudEvents));
    let mapped = services.mapper.map(&mapping, event).and_then(|record| {
        record.try_map(|_, event| match event? {
            event if event.timestamp.is_none() && !can_be_left_out => Err(without_timestamp(&mapping)),
            event => Ok(event),
        })
    });
    let mapped = mapped.map_err(|error| failed(vec![error]))?;
    let MappedRecord::Elements(elements) = &mapped else { return Ok(mapped) };
    let of_items = elements.iter().enumerate().filter_map(|(item, element)| Some((item, element.as_ref().err()?)));
    let errors: Vec<FormatError> =
        of_items.map(|(item, error)| FormatError { reason: format!("item {item}: {}", error.reason), ..error.clone() }).collect();
    if errors.is_empty() { Ok(mapped) } else { Err(failed(errors)) }
}
