//! Usage formats: creating, editing, reading and testing them. Every organization has the built-in formats, which are code and
//! not stored.

mod create;
mod edit;
mod find;
mod read;
mod test;

pub use create::create_format;
pub use edit::edit_format;
pub use find::NamedFormat;
pub use read::{get_format, list_formats};
pub use test::{TestedFormat, test_format};

pub(crate) use find::{find_format, newest_of};

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::format::{BuiltInFormat, FormatError, FormatMapping, FormatTarget, FormatVersion, UsageFormat};
use billing_domain::refs::FormatRef;
use billing_domain::text::OneLine;

use crate::Services;
use crate::error::{MappingOrigin, ResourceKind, UseCaseError, UseCaseResult};

/// The editable content of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatContent {
    /// The name of the format.
    pub name: OneLine,
    /// The expressions of the format.
    pub mapping: FormatMapping,
}

/// A version of a format, stored or built in.
#[derive(Clone, Debug)]
pub struct FormatView {
    /// The format.
    pub format: UsageFormat,
    /// When the version was created, and by whom. `None` for a built-in format.
    pub made: Option<(Timestamp, Actor)>,
}

impl From<BuiltInFormat> for FormatView {
    fn from(built_in: BuiltInFormat) -> Self {
        Self { format: built_in.format(), made: None }
    }
}

impl From<FormatVersion> for FormatView {
    fn from(stored: FormatVersion) -> Self {
        Self { format: stored.format, made: Some((stored.made_at, stored.made_by)) }
    }
}

/// Rejects the references of the built-in formats and the name of the default format, which are in use in every organization.
fn require_own_name(reference: Option<&FormatRef>, name: &OneLine) -> UseCaseResult<()> {
    let field = if reference.is_some_and(|reference| BuiltInFormat::of_ref(reference).is_some()) {
        "format_ref"
    } else if BuiltInFormat::named(name) == Some(BuiltInFormat::Default) {
        "format_name"
    } else {
        return Ok(());
    };
    Err(UseCaseError::AlreadyExists { thing: ResourceKind::Format, field })
}

/// Returns the error of a record without a timestamp.
pub(crate) fn without_timestamp(mapping: &FormatMapping) -> FormatError {
    let reason = "has no value: text expected".to_owned();
    FormatError { target: FormatTarget::Timestamp, expression: Some(mapping.timestamp.clone()), position: None, reason }
}

/// Checks that every expression of a submitted mapping is valid.
fn check(services: &Services, mapping: &FormatMapping) -> UseCaseResult<()> {
    let checked = services.mapper.check(mapping);
    checked.map_err(|errors| UseCaseError::FormatFailed { mapping: MappingOrigin::Submitted, errors })
}
