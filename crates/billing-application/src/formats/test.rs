//! Trying a format on an event; nothing is stored.

use billing_domain::access::Principal;
use billing_domain::format::{FormatMapping, MappedEvent};
use billing_domain::ports::{Access, transact};

use super::{NamedFormat, check, find_format};
use crate::error::{MappingOrigin, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// What is tried.
#[derive(Clone, Debug)]
pub enum TestedFormat {
    /// A mapping that need not be stored.
    Mapping(FormatMapping),
    /// A format's newest version.
    Named(NamedFormat),
}

/// Maps an event, given as the text of a JSON object.
///
/// # Errors
/// [`UseCaseError::FormatFailed`]: every expression that can't be read, or the first field that can't be given;
/// [`UseCaseError::Invalid`] where there is no such format.
pub fn test_format(services: &Services, principal: &Principal, tested: &TestedFormat, event: &str) -> UseCaseResult<MappedEvent> {
    let organization = allow(principal, UseCase::TestFormat)?;
    let (origin, mapping) = match tested {
        TestedFormat::Mapping(mapping) => {
            check(services, mapping)?;
            (MappingOrigin::Submitted, mapping.clone())
        }
        TestedFormat::Named(named) => {
            let found = transact(&*services.store, Access::Read, |tx| find_format(tx, organization, named))?;
            (MappingOrigin::Stored, found.mapping)
        }
    };
    let mapped = services.mapper.map(&mapping, event);
    mapped.map_err(|error| UseCaseError::FormatFailed { mapping: origin, errors: vec![error] })
}
