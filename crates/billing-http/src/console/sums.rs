//! Sums of usage on pages: what takes the time that reading all events takes stands in a frame of its own, where there are many.

use std::future::Future;
use std::iter;

use billing_application::UseCase;
use billing_console::{UsageAnswers, listings};
use maud::Markup;

use super::api_client::{Listed, one};
use super::lists::{listed, some_of, wanted};
use super::session_user::SessionUser;
use crate::problem::Problem;
use crate::query::Query;
use crate::routes::reports;

/// Where sums are.
const SUMMARY: &str = "/api/usage/summary";
/// Usage products whose names are asked for.
const MOST_PRODUCTS: &str = "1000";
/// Below the root, frames.
pub(super) const PLACE: &str = "sums";
/// So many events are summed up before anybody waits for it: about 50 ms.
const FEW: u64 = 50_000;

/// The calls that [`sums`] makes.
pub(super) fn calls(raw: &str) -> Vec<String> {
    let products = wanted(&listings::USAGE_PRODUCTS, iter::empty(), MOST_PRODUCTS);
    vec![format!("{SUMMARY}?{raw}"), format!("{}?{products}", listings::USAGE_PRODUCTS.path)]
}

/// Sums of usage with what is used.
///
/// # Errors
/// What keeps them from being read.
pub(super) async fn sums(visitor: &SessionUser, raw: &str) -> Result<UsageAnswers, Problem> {
    let caller = visitor.caller(UseCase::SummarizeUsage);
    let summary = one(reports::summarize_usage(caller, Query::of(SUMMARY, raw)?)).await?;
    let usage_products = some_of(visitor, &listings::USAGE_PRODUCTS, MOST_PRODUCTS).await?;
    Ok(UsageAnswers { summary, usage_products })
}

/// Where a frame of sums is asked for.
pub(super) fn address(what: &str, narrowed: &[(&str, &str)]) -> String {
    format!("{}?{}", billing_console::href(&[PLACE, what]), billing_console::query(narrowed))
}

/// Sums with the page that shows them, or where there are many events, the frame that is at an address.
///
/// # Errors
/// What keeps them from being read.
pub(super) async fn with_page(
    visitor: &SessionUser,
    title: &str,
    address: &str,
    sums: impl Future<Output = Result<Markup, Problem>>,
) -> Result<Markup, Problem> {
    // Of all there are: how many a customer has takes longer to tell.
    let all = wanted(&listings::EVENTS, iter::empty(), "1");
    let Listed { total, .. } = listed(visitor, &listings::EVENTS, &all).await?;
    let is_few = total.and_then(|total| total.parse().ok()).is_none_or(|total: u64| total <= FEW);
    if is_few { sums.await } else { Ok(billing_console::apart(title, address)) }
}
