//! Reads usage formats.

use billing_domain::access::Principal;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, transact};
use billing_domain::refs::FormatRef;

use super::{FormatView, is_built_in};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Returns a version of a format, or the newest version.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the format or version does not exist.
pub fn get_format(
    services: &Services,
    principal: &Principal,
    reference: &FormatRef,
    version: Option<u32>,
) -> UseCaseResult<FormatView> {
    let organization = allow(principal, UseCase::GetFormat)?;
    let found = if is_built_in(reference) {
        let built_in = FormatView::built_in();
        version.is_none_or(|version| version == built_in.format.version).then_some(built_in)
    } else {
        let stored = transact(&*services.store, Access::Read, |tx| -> UseCaseResult<_> {
            Ok(match version {
                None => tx.format(organization, reference)?,
                Some(version) => tx.format_version(organization, reference, version)?,
            })
        });
        stored?.map(FormatView::from)
    };
    found.ok_or(UseCaseError::Unknown(ResourceKind::Format))
}

/// Returns a page of formats in their newest versions: first the built-in format, then the others by creation.
///
/// # Errors
/// Returns [`Store`](UseCaseError::Store) if the formats cannot be read.
pub fn list_formats(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<FormatView>> {
    let organization = allow(principal, UseCase::ListFormats)?;
    // The built-in format takes the first place of the first page and shifts all others by one.
    let built_in = (page.offset() == 0).then(FormatView::built_in);
    let limit = if built_in.is_some() { page.size() - 1 } else { page.size() };
    let skip = page.offset().saturating_sub(1);
    let stored =
        transact(&*services.store, Access::Read, |tx| -> UseCaseResult<_> { Ok(tx.formats(organization, skip, limit)?) })?;
    let items = built_in.into_iter().chain(stored.items.into_iter().map(FormatView::from)).collect();
    Ok(Page { items, total: stored.total + 1 })
}
