//! Creates usage formats.

use billing_domain::audit::AuditAction;
use billing_domain::format::{FormatVersion, UsageFormat};
use billing_domain::refs::FormatRef;

use super::{FormatContent, FormatView, check, require_own_name};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::catalog::inserted;
use crate::error::{ResourceKind, UseCaseResult};

/// Creates a format. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`FormatFailed`](crate::error::UseCaseError::FormatFailed) with every invalid expression.
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference or name is in use, also by the built-in
///   format.
pub fn create_format(cx: &mut Cx<'_>, reference: Option<FormatRef>, content: FormatContent) -> UseCaseResult<FormatView> {
    let FormatContent { name, mapping } = content;
    check(cx.services, &mapping)?;
    require_own_name(reference.as_ref(), &name)?;
    let format_ref = reference.unwrap_or_else(|| FormatRef::assigned(cx.services.ids.new_id()));
    let made = FormatVersion { format: UsageFormat { format_ref, name, version: 1, mapping }, made_at: cx.now, made_by: cx.by };
    inserted(ResourceKind::Format, cx.tx.insert_format(cx.organization, &made)?)?;
    let view = FormatView::from(made);
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Format(&view)))?;
    Ok(view)
}
