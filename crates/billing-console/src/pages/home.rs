//! Loads the data of the home page.

use crate::{ChartMonth, Counted, HomeAnswers, JsonView, Listing, UsageMonths, href, listings};
use billing_api::dto::refused::RefusedUsageJson;
use billing_api::json_view::JsonAnswer;
use billing_api::operations::{LastVerification, SummarizeDocuments};
use billing_application::UseCase;
use billing_domain::calendar::{
    Date, Period, TimeZone, Timestamp, day_after, first_of_month, minus_days, plus_days, plus_months,
};
use billing_domain::summary::Interval;
use http::StatusCode;
use maud::Markup;
use serde_json::Value;

use super::api_client::Listed;
use super::explorer::ExplorerRange;
use super::lists::{few, listed, wanted};
use super::onboarding::{Progress, progress};
use super::page_builder::PageBuilder;
use super::reply::{html, to};
use super::session_user::SessionUser;
use super::sums::{self, with_page};
use super::{onboarding, reads};
use billing_api::console::PageAnswer;
use billing_api::problem::Problem;

/// Number of rejected usage counts shown.
const FEW_REFUSED: usize = 5;
/// Number of webhook endpoints that are checked. An organization has at most 16.
const MAX_ENDPOINTS: &str = "16";
/// Number of months in the chart of billed amounts.
const BILLED_MONTHS: i64 = 13;
/// Time after which a ledger verification should be repeated: 30 days.
const VERIFIED_FOR_SECONDS: i64 = 30 * 24 * 60 * 60;
/// Age groups of overdue documents, in days after the due date.
const AGES: [(&str, Option<u32>, Option<u32>); 5] = [
    ("Not due yet", None, Some(0)),
    ("1 to 30 days overdue", Some(1), Some(30)),
    ("31 to 60 days overdue", Some(31), Some(60)),
    ("61 to 90 days overdue", Some(61), Some(90)),
    ("More than 90 days overdue", Some(91), None),
];

/// Renders the home page, or leads to the first steps before the setup has begun.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn show(user: &SessionUser) -> Result<PageAnswer, Problem> {
    Ok(match page(user).await? {
        Some(made) => html(made.page(user, reads::done(user))),
        None => to(&href(&[onboarding::START])),
    })
}

/// Renders the home page. Returns `None` if the setup has not begun, so that the first steps are shown instead.
///
/// # Errors
/// Returns the problem of a failed API call.
async fn page(user: &SessionUser) -> Result<Option<PageBuilder>, Problem> {
    let is_begun = match progress(user).await? {
        Progress::Nothing => return Ok(None),
        Progress::Begun => true,
        Progress::Complete => false,
    };
    let (now, zone) = (user.now(), user.zone);
    let today = zone.service_date(now);
    let tomorrow = zone.start_of_day(day_after(today)).to_string();
    let narrowed = vec![("issues_before", tomorrow)];
    let contracts_due = counted(user, "Contracts with documents to issue today", &listings::CONTRACTS, narrowed).await?;
    let narrowed = vec![("has_amount_due", "true".to_owned()), ("order", "due_date".to_owned())];
    let owed = counted(user, "All amounts due", &listings::DOCUMENTS, narrowed).await?;
    let mut ages = Vec::new();
    for (name, from, to) in AGES {
        ages.push(counted(user, name, &listings::DOCUMENTS, due(today, from, to)).await?);
    }
    let since = minus_days(TimeZone::UTC.service_date(now), 1).to_string();
    sums::shows(user, &two_months(user)?.summary(&[]));
    let usage = with_page(user, "Usage this month", &sums::address("months", &[]), self::months(user)).await?;
    let refused = refused_since(user, &since).await?;
    let runs = few(user, &listings::BILLING_RUNS, &[("pageSize", "1")]).await?;
    let last_run = runs.get(0).cloned().unwrap_or_default().into();
    let endpoints = few(user, &listings::WEBHOOKS, &[("pageSize", MAX_ENDPOINTS)]).await?.into();
    let verification = user.get::<LastVerification>("").await?;
    let documents = few(user, &listings::DOCUMENTS, &[("order", "-created"), ("totals", "false")]).await?;
    let months = chart_months(today);
    let from = months.first().map(|month| ("issued_from", month.first_day.as_str()));
    let to = months.last().map(|month| ("issued_to", month.last_day.as_str()));
    let days = crate::query(&from.into_iter().chain(to).collect::<Vec<_>>());
    let billed = user.get_with::<SummarizeDocuments>("", &days).await?;
    let verified = Timestamp::parse(&verification.view().ended_at().to_text()).ok();
    let is_verification_old = verified.is_some_and(|at| at.plus_seconds(VERIFIED_FOR_SECONDS) < now);
    let may_bill = user.may(UseCase::RunBilling);
    let answers = HomeAnswers {
        is_begun,
        may_bill,
        months,
        billed,
        ages,
        owed,
        due: contracts_due,
        usage,
        refused,
        refused_since: since,
        last_run,
        endpoints,
        verification,
        is_verification_old,
        documents,
    };
    let body = crate::home(&answers);
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
    user: &SessionUser,
    name: &'static str,
    listing: &'static Listing,
    narrowed: Vec<(&'static str, String)>,
) -> Result<Counted, Problem> {
    let raw = wanted(listing, narrowed.iter().map(|(name, value)| (*name, value.as_str())), "1");
    // An internal error of one list, such as an unreadable contract, must not hide the rest of the page.
    let Listed { total, amount_due, .. } = match listed(&user.quietly(), listing, &raw).await {
        Err(problem) if problem.status() == StatusCode::INTERNAL_SERVER_ERROR => {
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
async fn refused_since(user: &SessionUser, since: &str) -> Result<(String, Value), Problem> {
    let raw = crate::query(&[("from", since), ("pageSize", "1000"), ("pageNumber", "0")]);
    let mut counts = listed(user, &listings::REFUSED, &raw).await?.elements;
    let count = |refused: &Value| JsonView::<RefusedUsageJson>::of(refused).count().json().as_u64().unwrap_or_default();
    let all = counts.as_array().into_iter().flatten().map(count).sum::<u64>().to_string();
    if let Some(counts) = counts.as_array_mut() {
        counts.sort_by_key(|one| std::cmp::Reverse(count(one)));
        counts.truncate(FEW_REFUSED);
    }
    Ok((all, counts))
}

/// Returns the months of the chart of billed amounts, oldest first. The last one contains `today`.
fn chart_months(today: Date) -> Vec<ChartMonth> {
    let this_month = first_of_month(today);
    let month = |ago: i64| {
        let first = plus_months(this_month, -ago);
        ChartMonth {
            first_day: first.to_string(),
            last_day: last_of_month(first).to_string(),
            name: first.format("%b").to_string(),
            caption: first.format("%B %Y").to_string(),
        }
    };
    (0..BILLED_MONTHS).rev().map(month).collect()
}

fn last_of_month(first: Date) -> Date {
    minus_days(plus_months(first, 1), 1)
}

/// Returns the days of the previous month and of the month of `now`.
fn two_months(user: &SessionUser) -> Result<ExplorerRange, Problem> {
    let (now, zone) = (user.now(), user.zone);
    let first = first_of_month(zone.service_date(now));
    ExplorerRange::of(Some(plus_months(first, -1)), Some(last_of_month(first)), Some(Interval::Day), now, zone)
}

/// Renders the usage of this month beside that of the month before.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn months(user: &SessionUser) -> Result<Markup, Problem> {
    let range = two_months(user)?;
    let answers = sums::sums(user, &range.summary(&[])).await?;
    let now = user.now();
    let (slots, today) = (range.slots(), user.zone.service_date(now));
    let first = first_of_month(today);
    let first_before = plus_months(first, -1);
    // The same day of the month before, or its last day.
    let days_since = Period::new(first, today).map_or(0, Period::days);
    let then = plus_days(first_before, days_since).min(last_of_month(first_before));
    let mut totals = [JsonAnswer::default(), JsonAnswer::default()];
    for (total, (first, last)) in totals.iter_mut().zip([(first, today), (first_before, then)]) {
        let days = ExplorerRange::of(Some(first), Some(last), Some(Interval::Day), now, user.zone)?;
        *total = sums::totals(user, &answers, &days.totals(&[])).await?;
    }
    let [so_far, until_then] = totals;
    let position = |day: Date| {
        let day = day.to_string();
        slots.iter().position(|slot| slot.caption == day).unwrap_or_default()
    };
    let (this_month, today) = (position(first), position(today));
    Ok(crate::usage_months(&UsageMonths { answers, slots, this_month, today, so_far, until_then }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chart_of_billed_amounts_has_thirteen_whole_months_up_to_this_one() {
        let months = chart_months(billing_domain::calendar::parse_date("2026-03-31").expect("a day"));
        let days: Vec<(&str, &str)> = months.iter().map(|month| (month.first_day.as_str(), month.last_day.as_str())).collect();
        assert_eq!((days.len(), days[0]), (13, ("2025-03-01", "2025-03-31")));
        assert_eq!(days[11..], [("2026-02-01", "2026-02-28"), ("2026-03-01", "2026-03-31")]);
        assert_eq!((months[0].name.as_str(), months[12].caption.as_str()), ("Mar", "March 2026"));
    }

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
