//! Reads usage formats.

use billing_domain::page::{ListRequest, ListSortKey, Page, UpdateFilter};
use billing_domain::refs::FormatRef;

use super::{FormatView, is_built_in};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Returns a version of a format, or the newest version.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the format or version does not exist.
pub fn get_format(cx: &mut Cx<'_>, reference: &FormatRef, version: Option<u32>) -> UseCaseResult<FormatView> {
    let found = if is_built_in(reference) {
        let built_in = FormatView::built_in();
        version.is_none_or(|version| version == built_in.format.version).then_some(built_in)
    } else {
        let stored = match version {
            None => cx.tx.format(cx.organization, reference)?,
            Some(version) => cx.tx.format_version(cx.organization, reference, version)?,
        };
        stored.map(FormatView::from)
    };
    found.ok_or(UseCaseError::Unknown(ResourceKind::Format))
}

/// Returns a page of formats in their newest versions: first the built-in format, then the others by creation. In the opposite
/// order, the built-in format is last. It never changes, so lists by the time of the last change do not contain it.
///
/// # Errors
/// Returns [`Store`](UseCaseError::Store) if the formats cannot be read.
pub fn list_formats(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<FormatView>> {
    let ListRequest { updates, by, page } = list;
    if *by == ListSortKey::Updated || *updates != UpdateFilter::default() || page.is_backward() {
        let Page { items, total } = cx.tx.listed_formats(cx.organization, updates, *by, *page)?;
        let mut items: Vec<FormatView> = items.into_iter().map(FormatView::from).collect();
        if *by == ListSortKey::Updated || *updates != UpdateFilter::default() {
            return Ok(Page { items, total });
        }
        if (page.offset()..page.offset() + u64::from(page.size())).contains(&total) {
            items.push(FormatView::built_in());
        }
        return Ok(Page { items, total: total + 1 });
    }
    // The built-in format takes the first place of the first page and shifts all others by one.
    let built_in = (page.offset() == 0).then(FormatView::built_in);
    let limit = if built_in.is_some() { page.size() - 1 } else { page.size() };
    let skip = page.offset().saturating_sub(1);
    let stored = cx.tx.formats(cx.organization, skip, limit)?;
    let items = built_in.into_iter().chain(stored.items.into_iter().map(FormatView::from)).collect();
    Ok(Page { items, total: stored.total + 1 })
}
