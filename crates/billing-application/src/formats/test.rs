//! Tests formats on events without storing anything.

use billing_domain::access::Principal;
use billing_domain::format::{FormatMapping, MappedEvent};

use super::{NamedFormat, check, find_format};
use crate::carry_out::{Cx, read};
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The format to test.
#[derive(Clone, Debug)]
pub enum TestedFormat {
    /// A mapping, which need not be stored.
    Mapping(FormatMapping),
    /// The newest version of a format.
    Named(NamedFormat),
}

/// Maps an event, given as the text of a JSON object.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::FormatFailed`] with every invalid expression, or with the first field that cannot be mapped.
/// - [`UseCaseError::Invalid`] if the format does not exist.
pub fn test_format(services: &Services, principal: &Principal, tested: &TestedFormat, event: &str) -> UseCaseResult<MappedEvent> {
    allow(principal, UseCase::TestFormat)?;
    let (origin, mapping) = match tested {
        TestedFormat::Mapping(mapping) => {
            check(services, mapping)?;
            (MappingOrigin::Submitted, mapping.clone())
        }
        TestedFormat::Named(named) => {
            let find = |cx: &mut Cx<'_>| find_format(cx.tx, cx.organization, named);
            (MappingOrigin::Stored, read(services, principal, UseCase::TestFormat, find)?.mapping)
        }
    };
    // The evaluation takes up to 50 ms, so it happens outside of the transaction.
    let mapped = services.mapper.map(&mapping, event);
    mapped.map_err(|error| UseCaseError::FormatFailed { mapping: origin, errors: vec![error] })
}
