//! Usage sums on pages. Sums over many events take long, so they are loaded in a separate frame.

use billing_api::operations::SummarizeUsage;
use std::future::Future;
use std::iter;

use crate::{UsageAnswers, listings};
use maud::Markup;

use super::api_client::Listed;
use super::lists::{listed, some_of, wanted};
use super::session_user::{AnswerOf, SessionUser};
use billing_api::json_view::JsonAnswer;
use billing_api::problem::Problem;

/// Maximum number of usage products whose names are loaded.
const MOST_PRODUCTS: &str = "1000";
/// Path segment of the frames below the root.
pub(super) const PLACE: &str = "sums";
/// Number of events that are summed within the page: about 50 ms.
const FEW: u64 = 50_000;

/// Shows the API calls of [`sums`] on the page, which may load the sums in a frame.
pub(super) fn shows(user: &SessionUser, raw: &str) {
    user.shows(&SummarizeUsage::SPEC, "", raw);
    let products = wanted(&listings::USAGE_PRODUCTS, iter::empty(), MOST_PRODUCTS);
    user.shows(listings::USAGE_PRODUCTS.operation, "", &products);
}

/// Loads usage sums and the usage products. The page does not show the calls.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn sums(user: &SessionUser, raw: &str) -> Result<UsageAnswers, Problem> {
    let summary = user.quietly().get_with::<SummarizeUsage>("", raw).await?;
    let usage_products = some_of(user, &listings::USAGE_PRODUCTS, MOST_PRODUCTS).await?.into();
    Ok(UsageAnswers { summary, usage_products })
}

/// Loads the sums over a whole time, for the usage products whose quantity is not the sum over its intervals. Without such a usage
/// product, returns null. The page does not show the call.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn totals(user: &SessionUser, answers: &UsageAnswers, raw: &str) -> AnswerOf<SummarizeUsage> {
    if !answers.needs_totals() {
        return Ok(JsonAnswer::default());
    }
    user.quietly().get_with::<SummarizeUsage>("", raw).await
}

/// Returns the URL of a frame.
pub(super) fn address(what: &str, narrowed: &[(&str, &str)]) -> String {
    format!("{}?{}", crate::href(&[PLACE, what]), crate::query(narrowed))
}

/// Renders sums within the page, or, if many events exist, a frame that loads `address`.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn with_page(
    user: &SessionUser,
    title: &str,
    address: &str,
    sums: impl Future<Output = Result<Markup, Problem>>,
) -> Result<Markup, Problem> {
    // Counts all events: counting those of one customer takes longer.
    let all = wanted(&listings::EVENTS, iter::empty(), "1");
    let Listed { total, .. } = listed(&user.quietly(), &listings::EVENTS, &all).await?;
    let is_few = total.and_then(|total| total.parse().ok()).is_none_or(|total: u64| total <= FEW);
    if is_few { sums.await } else { Ok(crate::apart(title, address)) }
}
