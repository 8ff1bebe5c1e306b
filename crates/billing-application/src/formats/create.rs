//! Creates usage formats.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::format::{FormatVersion, UsageFormat};
use billing_domain::ports::{Access, transact};
use billing_domain::refs::FormatRef;

use super::{FormatContent, FormatView, check, refuse_built_in};
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::catalog::inserted;
use crate::error::{ResourceKind, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Creates a format. Assigns a reference if none is given.
///
/// # Errors
/// Returns one of these errors:
/// - [`FormatFailed`](crate::error::UseCaseError::FormatFailed) with every invalid expression.
/// - [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference or name is in use, also by the built-in
///   format.
pub fn create_format(
    services: &Services,
    principal: &Principal,
    reference: Option<FormatRef>,
    content: FormatContent,
) -> UseCaseResult<FormatView> {
    let organization = allow(principal, UseCase::CreateFormat)?;
    let FormatContent { name, mapping } = content;
    check(services, &mapping)?;
    refuse_built_in(reference.as_ref(), &name)?;
    let format_ref = reference.unwrap_or_else(|| FormatRef::assigned(services.ids.new_id()));
    let made = FormatVersion {
        format: UsageFormat { format_ref, name, version: 1, mapping },
        made_at: services.now(),
        made_by: principal.actor(),
    };
    transact(&*services.store, Access::Write, |tx| {
        inserted(ResourceKind::Format, tx.insert_format(organization, &made)?)?;
        let view = FormatView::from(made.clone());
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Create,
            AuditChange::Made(AuditSubject::Format(&view)),
        )?;
        Ok(view)
    })
}
