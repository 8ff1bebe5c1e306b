//! Finds the format that a request body names.

use billing_domain::format::{DEFAULT_FORMAT_NAME, UsageFormat};
use billing_domain::ports::Tx;
use billing_domain::refs::{FormatRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

use super::is_built_in;
use crate::error::UseCaseResult;

/// A format, by reference or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedFormat {
    /// The format with this reference.
    Ref(FormatRef),
    /// The format whose current name this is.
    Name(OneLine),
}

impl NamedFormat {
    /// Returns whether this is the built-in format, which accepts the default event shape.
    pub fn is_built_in(&self) -> bool {
        match self {
            Self::Ref(format_ref) => is_built_in(format_ref),
            Self::Name(name) => name.as_str() == DEFAULT_FORMAT_NAME,
        }
    }
}

/// Returns the newest version of the format that a request body names.
pub(crate) fn find_format(tx: &mut dyn Tx, organization: OrganizationId, named: &NamedFormat) -> UseCaseResult<UsageFormat> {
    let (field, found) = match named {
        NamedFormat::Ref(format_ref) => ("format_ref", newest_of(tx, organization, format_ref)?),
        NamedFormat::Name(_) if named.is_built_in() => ("format_name", Some(UsageFormat::built_in())),
        NamedFormat::Name(name) => ("format_name", tx.format_by_name(organization, name)?.map(|stored| stored.format)),
    };
    let unknown = || Violations::one(&[field], "unknown_format", format!("must be the {field} of an existing usage format"));
    Ok(found.ok_or_else(unknown)?)
}

/// Returns the newest version of the format with a reference.
pub(crate) fn newest_of(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    format_ref: &FormatRef,
) -> UseCaseResult<Option<UsageFormat>> {
    if is_built_in(format_ref) {
        return Ok(Some(UsageFormat::built_in()));
    }
    Ok(tx.format(organization, format_ref)?.map(|stored| stored.format))
}
