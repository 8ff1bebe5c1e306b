//! Reads usage formats.

use billing_domain::format::BuiltInFormat;
use billing_domain::page::{ListRequest, ListSortKey, Page, UpdateFilter};
use billing_domain::refs::FormatRef;

use super::FormatView;
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Returns a version of a format, or the newest version.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the format or version does not exist.
pub fn get_format(cx: &mut Cx<'_>, reference: &FormatRef, version: Option<u32>) -> UseCaseResult<FormatView> {
    let found = if let Some(built_in) = BuiltInFormat::of_ref(reference) {
        let built_in = FormatView::from(built_in);
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

/// Returns a page of formats in their newest versions: first the built-in formats, then the others by creation. In the opposite
/// order, the built-in formats are last. They never change, so lists by the time of the last change do not contain them. A built-in
/// format that a format of the organization replaces is not listed.
///
/// # Errors
/// Returns [`Store`](UseCaseError::Store) if the formats cannot be read.
pub fn list_formats(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<FormatView>> {
    let ListRequest { updates, by, page } = list;
    let is_by_change = *by == ListSortKey::Updated || *updates != UpdateFilter::default();
    let mut built_in: Vec<FormatView> = Vec::new();
    for format in if is_by_change { [].as_slice() } else { &BuiltInFormat::ALL } {
        if cx.tx.format_by_name(cx.organization, &format.name())?.is_none() {
            built_in.push(FormatView::from(*format));
        }
    }
    let first = page.offset();
    let is_in_page = |place: u64| (first..first + u64::from(page.size())).contains(&place);
    if is_by_change || page.is_backward() {
        let Page { items, total } = cx.tx.listed_formats(cx.organization, updates, *by, *page)?;
        let last = (total..).zip(built_in.iter().rev()).filter(|(place, _)| is_in_page(*place)).map(|(_, view)| view.clone());
        let items = items.into_iter().map(FormatView::from).chain(last).collect();
        return Ok(Page { items, total: total + built_in.len() as u64 });
    }
    // The built-in formats shift all others.
    let all = built_in.len() as u64;
    let mut items: Vec<FormatView> = (0..).zip(built_in).filter(|(place, _)| is_in_page(*place)).map(|(_, view)| view).collect();
    let limit = page.size() - u32::try_from(items.len()).unwrap_or(0);
    let stored = cx.tx.formats(cx.organization, first.saturating_sub(all), limit)?;
    items.extend(stored.items.into_iter().map(FormatView::from));
    Ok(Page { items, total: stored.total + all })
}
