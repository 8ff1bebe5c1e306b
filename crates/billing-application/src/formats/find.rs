//! Finds the format that a request body names.

use billing_domain::format::{BuiltInFormat, UsageFormat};
use billing_domain::ports::Tx;
use billing_domain::refs::{FormatRef, OrganizationId};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;

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
    /// Returns whether this is the default format, which accepts the default event shape.
    pub fn is_default(&self) -> bool {
        self.built_in() == Some(BuiltInFormat::Default)
    }

    /// Returns the format of CloudEvents, which can be an organization's own.
    pub fn cloud_events() -> Self {
        Self::Name(BuiltInFormat::CloudEvents.name())
    }

    /// Returns the built-in format with this reference or name.
    pub(super) fn built_in(&self) -> Option<BuiltInFormat> {
        match self {
            Self::Ref(format_ref) => BuiltInFormat::of_ref(format_ref),
            Self::Name(name) => BuiltInFormat::named(name),
        }
    }
}

/// Returns the newest version of the format that a request body names.
pub(crate) fn find_format(tx: &mut dyn Tx, organization: OrganizationId, named: &NamedFormat) -> UseCaseResult<UsageFormat> {
    let (field, found) = match named {
        NamedFormat::Ref(format_ref) => ("format_ref", newest_of(tx, organization, format_ref)?),
        NamedFormat::Name(_) if named.is_default() => ("format_name", Some(BuiltInFormat::Default.format())),
        NamedFormat::Name(name) => {
            let own = tx.format_by_name(organization, name)?.map(|stored| stored.format);
            ("format_name", own.or_else(|| named.built_in().map(BuiltInFormat::format)))
        }
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
    if let Some(built_in) = BuiltInFormat::of_ref(format_ref) {
        return Ok(Some(built_in.format()));
    }
    Ok(tx.format(organization, format_ref)?.map(|stored| stored.format))
}
