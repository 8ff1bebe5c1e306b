//! Loads API lists for pages.

use crate::{Crumb, Listing, View, href, listings};
use serde_json::Value;

use super::api_client::Listed;
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// Number of elements of a list embedded in another page.
const FEW: &str = "10";

/// Returns the list of a part of the console.
///
/// # Errors
/// Returns a problem if the part does not exist.
pub(super) fn listing_of(part: &str) -> Result<&'static Listing, Problem> {
    Listing::of(part).ok_or_else(Problem::unknown_route)
}

pub(super) fn crumbs(listing: &Listing) -> Vec<Crumb> {
    vec![Crumb { name: listing.title.to_owned(), href: href(&[listing.part]) }]
}

/// Returns the query of a list: the non-empty parameters and the page size.
pub(super) fn wanted<'s>(listing: &Listing, submitted: impl Iterator<Item = (&'s str, &'s str)>, size: &'s str) -> String {
    let is_of_page = |name: &str| name == "done" || name == View::COLUMNS;
    let mut pairs: Vec<(&str, &str)> = submitted.filter(|(name, value)| !value.is_empty() && !is_of_page(name)).collect();
    let has = |pairs: &[(&str, &str)], name: &str| pairs.iter().any(|(submitted, _)| *submitted == name);
    if !has(&pairs, "pageSize") {
        pairs.push(("pageSize", size));
    }
    if let (Some(order), false) = (listing.order_of(&pairs), has(&pairs, View::ORDER)) {
        pairs.push((View::ORDER, order));
    }
    if !has(&pairs, "pageNumber") && !goes_on_by_cursor(listing) {
        pairs.push(("pageNumber", "0"));
    }
    crate::query(&pairs)
}

/// Returns whether the list is paginated by cursor instead of page number.
pub(super) fn goes_on_by_cursor(listing: &Listing) -> bool {
    [listings::DOCUMENTS.part, listings::AUDIT.part].contains(&listing.part)
}

pub(super) async fn listed(user: &SessionUser, listing: &Listing, raw: &str) -> Result<Listed, Problem> {
    user.list(listing.operation, raw).await
}

/// Loads the first elements of a filtered list, for the page of another object.
pub(super) async fn few(user: &SessionUser, listing: &Listing, narrowed: &[(&str, &str)]) -> Result<Value, Problem> {
    Ok(listed(user, listing, &wanted(listing, narrowed.iter().copied(), FEW)).await?.elements)
}

/// Loads the first `size` elements of a list. The page does not show the call.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn some_of(user: &SessionUser, listing: &Listing, size: &str) -> Result<Value, Problem> {
    Ok(listed(&user.quietly(), listing, &wanted(listing, std::iter::empty(), size)).await?.elements)
}
