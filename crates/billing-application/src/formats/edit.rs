//! Edits usage formats. Each edit creates a version, and events keep the version that mapped them.

use billing_domain::audit::AuditAction;
use billing_domain::format::{BuiltInFormat, FormatVersion, UsageFormat};
use billing_domain::patch::Changes;
use billing_domain::refs::FormatRef;

use super::{FormatContent, FormatView, check, require_own_name};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::catalog::updated;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Changes a format. An edit that changes nothing creates no version.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the format does not exist.
/// - [`UseCaseError::Conflict`] for the built-in format.
/// - Any error of [`create_format`](super::create_format).
pub fn edit_format(cx: &mut Cx<'_>, reference: &FormatRef, changes: &Changes<FormatContent>) -> UseCaseResult<FormatView> {
    if BuiltInFormat::of_ref(reference).is_some() {
        let detail = "the built-in format cannot be edited: create a new format".to_owned();
        return Err(UseCaseError::Conflict { code: "format_built_in", detail });
    }
    let present = cx.tx.format(cx.organization, reference)?.ok_or(UseCaseError::Unknown(ResourceKind::Format))?;
    let mut content = FormatContent { name: present.format.name.clone(), mapping: present.format.mapping.clone() };
    changes.apply(&mut content);
    let FormatContent { name, mapping } = content;
    if name == present.format.name && mapping == present.format.mapping {
        return Ok(present.into());
    }
    check(cx.services, &mapping)?;
    require_own_name(None, &name)?;
    let version = present.format.version + 1;
    let next = FormatVersion {
        format: UsageFormat { format_ref: present.format.format_ref.clone(), name, version, mapping },
        made_at: cx.now,
        made_by: cx.by,
    };
    updated(ResourceKind::Format, cx.tx.append_format_version(cx.organization, &next)?)?;
    let (before, view) = (FormatView::from(present), FormatView::from(next));
    let change = AuditChange::From(AuditSubject::Format(&before), AuditSubject::Format(&view));
    cx.audit(AuditAction::Edit, change)?;
    Ok(view)
}
