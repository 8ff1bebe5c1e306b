//! The page of a sandbox's clock.

use billing_api::console::{FormData, PageAnswer};
use billing_api::operations::{AdvanceClock, GetClock};
use billing_api::problem::Problem;
use billing_domain::calendar::{Timestamp, parse_date, plus_months};
use serde_json::json;

use super::form_data::field;
use super::page_builder::PageBuilder;
use super::reply::to;
use super::session_user::SessionUser;
use crate::frame::{CLOCK, ClockStep};
use crate::href;

/// The number of seconds of a day.
const DAY_SECONDS: i64 = 86_400;

/// Renders the clock, and what came of the last advance.
pub(super) async fn page(user: &SessionUser, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let clock = user.get::<GetClock>("").await?;
    let since = field(submitted, "since").and_then(|since| Timestamp::parse(since).ok());
    let days = since.map(|since| [since, user.now()].map(|at| user.zone.service_date(at).to_string()));
    let counts = crate::clock::COUNTS.map(|(name, _)| field(submitted, name).and_then(|count| count.parse().ok()).unwrap_or(0));
    let body = crate::clock::clock(clock.view(), days.as_ref(), counts);
    user.shows(&AdvanceClock::SPEC, "", "");
    Ok(PageBuilder::of("Clock", CLOCK, body))
}

/// Moves the clock as a button of the bar says, and leads to what came of it.
pub(super) async fn advance(user: &SessionUser, submitted: &FormData) -> Result<PageAnswer, Problem> {
    let since = user.now();
    let Some(wanted) = wanted(user, submitted).await? else { return Ok(to(&href(&[CLOCK]))) };
    let advanced = user.post::<AdvanceClock>(json!({"to": wanted.to_string()})).await?;
    let advanced = advanced.view();
    let counts = [
        advanced.issued().to_text(),
        advanced.voided().to_text(),
        advanced.notifications().to_text(),
        advanced.failed().items().count().to_string(),
    ];
    let counts = crate::clock::COUNTS.iter().zip(counts).map(|((name, _), count)| format!("&{name}={count}"));
    Ok(to(&format!("{}?since={since}{}", href(&[CLOCK]), counts.collect::<String>())))
}

/// Returns the instant of a step. Nothing can be due, and a form can lack the day.
async fn wanted(user: &SessionUser, submitted: &FormData) -> Result<Option<Timestamp>, Problem> {
    let (now, zone) = (user.now(), user.zone);
    let step = ClockStep::ALL.into_iter().find(|step| field(submitted, "step") == Some(step.word()));
    Ok(match step {
        Some(ClockStep::OneDay) => Some(now.plus_seconds(DAY_SECONDS)),
        Some(ClockStep::OneMonth) => {
            let today = zone.service_date(now);
            let time_of_day = now.as_micros() - zone.start_of_day(today).as_micros();
            Timestamp::from_micros(zone.start_of_day(plus_months(today, 1)).as_micros() + time_of_day).ok()
        }
        Some(ClockStep::NextDue) => {
            let clock = user.get::<GetClock>("").await?;
            Timestamp::parse(&clock.view().next().to_text()).ok()
        }
        None => field(submitted, "day").and_then(|day| parse_date(day).ok()).map(|day| zone.start_of_day(day)),
    })
}
