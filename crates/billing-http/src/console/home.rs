//! Loads the data of the home page.

use actix_web::ResponseError as _;
use actix_web::http::StatusCode;
use billing_console::{Counted, HomeAnswers, JsonView, Listing, UsageToday, listings};
use billing_domain::calendar::{Date, TimeZone, Timestamp, day_after, minus_days, plus_months};
use maud::Markup;
use serde_json::Value;

use super::api_client::Listed;
use super::lists::{few, listed, wanted};
use super::onboarding::{Progress, progress};
use super::page_builder::PageBuilder;
use super::session_user::SessionUser;
use super::sums::{self, with_page};
use crate::problem::Problem;

/// Number of rejected usage counts shown.
const FEW_REFUSED: usize = 5;
/// Age groups of overdue documents, in days after the due date.
const AGES: [(&str, Option<u32>, Option<u32>); 5] = [
    ("Not due yet", None, Some(0)),
    ("1 to 30 days overdue", Some(1), Some(30)),
    ("31 to 60 days overdue", Some(31), Some(60)),
    ("61 to 90 days overdue", Some(61), Some(90)),
    ("More than 90 days overdue", Some(91), None),
];

/// Renders the home page. Returns `None` if the setup has not begun, so that the first steps are shown instead.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn page(visitor: &SessionUser) -> Result<Option<PageBuilder>, Problem> {
    let is_begun = match progress(visitor).await? {
        Progress::Nothing => return Ok(None),
        Progress::Begun => true,
        Progress::Complete => false,
    };
    let (now, zone) = (visitor.state.services().now(), visitor.zone);
    let today = zone.service_date(now);
    let tomorrow = zone.start_of_day(day_after(today)).to_string();
    let mut cards = Vec::new();
    for (name, listing, narrowed) in [
        ("Amount due", &listings::DOCUMENTS, vec![("has_amount_due", "true".to_owned()), ("order", "due_date".to_owned())]),
        ("Overdue", &listings::DOCUMENTS, vec![("overdue", "true".to_owned()), ("order", "due_date".to_owned())]),
        ("Drafts", &listings::DOCUMENTS, vec![("state", "DRAFT".to_owned())]),
        ("Contracts with documents to issue today", &listings::CONTRACTS, vec![("issues_before", tomorrow)]),
    ] {
        cards.push(counted(visitor, name, listing, narrowed).await?);
    }
    let mut ages = Vec::new();
    for (name, from, to) in AGES {
        ages.push(counted(visitor, name, &listings::DOCUMENTS, due(today, from, to)).await?);
    }
    let since = minus_days(TimeZone::UTC.service_date(now), 1).to_string();
    for raw in &DayComparison::now(now, zone).raw {
        sums::shows(visitor, raw);
    }
    let usage = with_page(visitor, "Usage today", &sums::address("today", &[]), self::today(visitor)).await?;
    let refused = refused_since(visitor, &since).await?;
    let runs = few(visitor, &listings::BILLING_RUNS, &[("pageSize", "1")]).await?;
    let last_run = runs.get(0).cloned().unwrap_or_default();
    let verification = visitor.get("last_verification", "").await?;
    let documents = few(visitor, &listings::DOCUMENTS, &[("order", "-created"), ("totals", "false")]).await?;
    let answers = HomeAnswers { is_begun, cards, ages, usage, refused, refused_since: since, last_run, verification, documents };
    let body = billing_console::home(&answers);
    Ok(Some(PageBuilder::of("Home", "", body)))
}

/// Returns the filter for documents with an amount due that have been due for the given number of days.
fn due(today: Date, from: Option<u32>, to: Option<u32>) -> Vec<(&'static str, String)> {
    let before = |days: u32| minus_days(today, days).to_string();
    let mut narrowed = vec![("has_amount_due", "true".to_owned()), ("order", "due_date".to_owned())];
    narrowed.extend(to.map(|days| ("due_from", before(days))));
    narrowed.extend(from.map(|days| ("due_to", before(days))));
    narrowed
}

/// Returns the size of a list and the amount due of its documents. The page does not show the call.
async fn counted(
    visitor: &SessionUser,
    name: &'static str,
    listing: &'static Listing,
    narrowed: Vec<(&'static str, String)>,
) -> Result<Counted, Problem> {
    let raw = wanted(listing, narrowed.iter().map(|(name, value)| (*name, value.as_str())), "1");
    // An internal error of one list, such as an unreadable contract, must not hide the rest of the page.
    let Listed { total, amount_due, .. } = match listed(&visitor.quietly(), listing, &raw).await {
        Err(problem) if problem.status_code() == StatusCode::INTERNAL_SERVER_ERROR => {
            let count = "not available".to_owned();
            return Ok(Counted { name, count, amounts: String::new(), part: listing.part, narrowed });
        }
        listed => listed?,
    };
    // Drafts have no amount due.
    let is_owed = narrowed.iter().any(|(name, _)| ["has_amount_due", "overdue"].contains(name));
    let amounts = amount_due.filter(|_| is_owed).unwrap_or_default();
    Ok(Counted { name, count: total.unwrap_or_default(), amounts, part: listing.part, narrowed })
}

/// Returns the number of events rejected since a UTC day and the most frequent rejections.
async fn refused_since(visitor: &SessionUser, since: &str) -> Result<(String, Value), Problem> {
    let raw = billing_console::query(&[("from", since), ("pageSize", "1000"), ("pageNumber", "0")]);
    let mut counts = listed(visitor, &listings::REFUSED, &raw).await?.elements;
    let count = |count: &Value| count["count"].as_u64().unwrap_or_default();
    let all = JsonView(&counts).items().map(|at| count(at.0)).sum::<u64>().to_string();
    if let Some(counts) = counts.as_array_mut() {
        counts.sort_by_key(|one| std::cmp::Reverse(count(one)));
        counts.truncate(FEW_REFUSED);
    }
    Ok((all, counts))
}

/// Today, and the same day of the previous month up to the same time.
struct DayComparison {
    days: [Date; 2],
    /// Queries of the usage sums.
    raw: [String; 2],
}

impl DayComparison {
    fn now(now: Timestamp, zone: TimeZone) -> Self {
        let today = zone.service_date(now);
        let before = plus_months(today, -1);
        let since_midnight = now.as_micros() - zone.start_of_day(today).as_micros();
        let (from, from_before) = (zone.start_of_day(today), zone.start_of_day(before));
        // Includes events with a timestamp later today.
        let to = zone.start_of_day(day_after(today));
        let to_before = from_before.plus_seconds(since_midnight / 1_000_000);
        let raw = |from: Timestamp, to: Timestamp| {
            let (from, to) = (from.to_string(), to.to_string());
            billing_console::query(&[("interval", "day"), ("group_by", "usage_product_ref"), ("from", &from), ("to", &to)])
        };
        Self { days: [today, before], raw: [raw(from, to), raw(from_before, to_before)] }
    }
}

/// Renders today's usage beside the usage of the same day of the previous month up to the same time.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn today(visitor: &SessionUser) -> Result<Markup, Problem> {
    let DayComparison { days: [today, before], raw } = DayComparison::now(visitor.state.services().now(), visitor.zone);
    let now = sums::sums(visitor, &raw[0]).await?;
    let earlier = sums::sums(visitor, &raw[1]).await?;
    let days = (today.to_string(), before.to_string());
    Ok(billing_console::usage_today(&UsageToday { now, before: earlier.summary, days }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_a_document_can_be_due_is_of_one_age() {
        let today = billing_domain::calendar::parse_date("2026-11-20").expect("a day");
        for days in -400..400i64 {
            let day = match u32::try_from(days) {
                Ok(days) => minus_days(today, days),
                Err(_) => billing_domain::calendar::plus_days(today, u32::try_from(-days).expect("small")),
            };
            let is_in = |narrowed: &[(&str, String)]| {
                narrowed.iter().all(|(name, bound)| match *name {
                    "due_from" => day.to_string() >= *bound,
                    "due_to" => day.to_string() <= *bound,
                    _ => true,
                })
            };
            let ages: Vec<&str> =
                AGES.iter().filter(|(_, from, to)| is_in(&due(today, *from, *to))).map(|(name, ..)| *name).collect();
            let expected = match days {
                ..=0 => "Not due yet",
                1..=30 => "1 to 30 days overdue",
                31..=60 => "31 to 60 days overdue",
                61..=90 => "61 to 90 days overdue",
                _ => "More than 90 days overdue",
            };
            assert_eq!(ages, [expected], "{day}");
        }
    }
}
