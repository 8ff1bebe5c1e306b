//! Loads the data of the usage explorer and computes the intervals of its bars.

use crate::{ChartBucket, Explored, Filter, InputKind, Span, listings};
use billing_api::console::FormData;
use billing_application::error::UseCaseError;
use billing_domain::calendar::{Date, Period, TimeZone, Timestamp, minus_days, plus_days};
use billing_domain::summary::{BucketSpan, Interval};
use billing_domain::violation::Violations;
use maud::Markup;

use super::form_data::pairs;
use super::lists::listed;
use super::page_builder::PageBuilder;
use super::ranges::{Calendar, selected};
use super::session_user::SessionUser;
use super::sums::{address, shows, sums, totals, with_page};
use billing_api::problem::Problem;
use billing_api::query::Query;
use billing_api::query::explorer::ExplorerParams;

/// The part of the console that has the explorer.
const PART: &str = "usage";
/// Maximum number of bars in a chart: three months by day.
const MAX_BARS: u32 = 93;
/// Maximum number of days that are shown by hour by default.
const MAX_DAYS_BY_HOUR: u32 = 3;
/// Default number of days, including today.
const USUAL_DAYS: u32 = 30;
/// Number of rejected usage counts shown.
const MOST_REFUSED: &str = "10";

/// The selected days, interval and time zone.
pub(super) struct ExplorerRange {
    days: Period,
    interval: Interval,
    is_coarser: bool,
    zone: TimeZone,
}

impl ExplorerRange {
    /// Returns the default days up to today, by day.
    ///
    /// # Errors
    /// Returns no error, because today is always a valid date.
    pub(super) fn usual(now: Timestamp, zone: TimeZone) -> Result<Self, Problem> {
        Self::of(None, None, None, now, zone)
    }

    /// Creates a range for the requested days and interval, or their defaults.
    ///
    /// # Errors
    /// Returns a problem if the days are out of order or too many.
    pub(super) fn of(
        from: Option<Date>,
        to: Option<Date>,
        asked: Option<Interval>,
        now: Timestamp,
        zone: TimeZone,
    ) -> Result<Self, Problem> {
        let today = zone.service_date(now);
        let last = to.unwrap_or_else(|| from.map_or(today, |first| first.max(today)));
        let first = from.unwrap_or_else(|| minus_days(last, USUAL_DAYS - 1));
        let days = Period::inclusive(first, last).ok_or_else(|| wrong("to", "must not be before `from`".to_owned()))?;
        if Interval::Month.count(days) > MAX_BARS {
            return Err(wrong("from", format!("must be at most {MAX_BARS} months before the last day")));
        }
        let usual = if days.days() <= MAX_DAYS_BY_HOUR { Interval::Hour } else { Interval::Day };
        let wanted = asked.unwrap_or(usual);
        let fits = |interval: &Interval| interval.count(days) <= MAX_BARS;
        let mut from_there =
            [Interval::Hour, Interval::Day, Interval::Month].into_iter().skip_while(|interval| *interval != wanted);
        let interval = from_there.find(fits).unwrap_or(Interval::Month);
        Ok(Self { days, interval, is_coarser: asked.is_some_and(|asked| asked != interval), zone })
    }

    /// Returns the start of the first day and the end of the last day.
    fn instants(&self) -> (Timestamp, Timestamp) {
        (self.zone.start_of_day(self.days.start()), self.zone.start_of_day(self.days.end()))
    }

    /// Returns the query of the usage summary by interval with the given filters.
    pub(super) fn summary(&self, narrowed: &[(String, String)]) -> String {
        let zone = (self.zone != TimeZone::UTC).then_some(("timezone", self.zone.name()));
        self.query(narrowed, &Vec::from_iter([("interval", word(self.interval))].into_iter().chain(zone)))
    }

    /// Returns the query of the usage summary over all days with the given filters.
    pub(super) fn totals(&self, narrowed: &[(String, String)]) -> String {
        self.query(narrowed, &[])
    }

    fn query(&self, narrowed: &[(String, String)], more: &[(&str, &str)]) -> String {
        let (from, to) = self.instants();
        let (from, to) = (from.to_string(), to.to_string());
        let of_calendar = narrowed.iter().filter(|(name, _)| name != "timezone");
        let mut pairs: Vec<(&str, &str)> = of_calendar.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        pairs.extend(more);
        pairs.extend([("group_by", "usage_product_ref"), ("from", &from), ("to", &to)]);
        crate::query(&pairs)
    }

    /// Returns one bucket per bar.
    pub(super) fn slots(&self) -> Vec<ChartBucket> {
        let slot = |stretch: &BucketSpan| {
            let BucketSpan { starts, from, to, days } = *stretch;
            let day = days.start();
            let (name, caption, closer) = match self.interval {
                Interval::Hour => {
                    let clock = self.zone.time_of_day(from).format("%H:%M").to_string();
                    (clock.clone(), format!("{day} {clock}"), None)
                }
                Interval::Day => (day.format("%-d %b").to_string(), day.to_string(), Some(of_days(days))),
                Interval::Month => (day.format("%b %y").to_string(), day.format("%B %Y").to_string(), Some(of_days(days))),
            };
            ChartBucket { starts: starts.to_string(), from: from.to_string(), to: to.to_string(), name, caption, closer }
        };
        self.interval.stretches(self.days, self.zone).iter().map(slot).collect()
    }

    /// Returns the links to earlier, later and longer periods.
    fn elsewhere(&self) -> Vec<(&'static str, Period)> {
        let (first, count) = (self.days.start(), self.days.days());
        let before = minus_days(first, count);
        let wider = Period::new(before, plus_days(self.days.end(), count));
        let places = [
            ("Earlier", Period::new(before, first)),
            ("Later", Period::new(self.days.end(), plus_days(self.days.end(), count))),
            ("Longer", wider.filter(|days| Interval::Month.count(*days) <= MAX_BARS)),
        ];
        places.into_iter().filter_map(|(name, days)| Some((name, days?))).collect()
    }
}

fn of_days(days: Period) -> Vec<(&'static str, String)> {
    vec![("from", days.start().to_string()), ("to", days.last_day().to_string())]
}

const fn word(interval: Interval) -> &'static str {
    match interval {
        Interval::Hour => "hour",
        Interval::Day => "day",
        Interval::Month => "month",
    }
}

fn wrong(name: &str, detail: String) -> Problem {
    Problem::from(UseCaseError::Invalid(Violations::one(&[name], "out_of_range", detail)))
}

/// A parsed explorer request.
struct ExplorerQuery {
    shown: ExplorerRange,
    /// Filters other than the time, as API parameters.
    narrowed: Vec<(String, String)>,
    /// The non-empty parameters of the request.
    given: Vec<(String, String)>,
}

fn wanted(user: &SessionUser, submitted: &FormData) -> Result<ExplorerQuery, Problem> {
    let given: Vec<(&str, &str)> =
        submitted.iter().map(|(name, value)| (name.as_str(), value.trim())).filter(|(_, value)| !value.is_empty()).collect();
    let params: ExplorerParams = Query::of("/console/usage", &crate::query(&given))?.read()?;
    let zone = params.timezone.unwrap_or(user.zone);
    let shown = ExplorerRange::of(params.from, params.to, params.interval, user.now(), zone)?;
    let references = [
        ("customer_ref", &params.customer_ref),
        ("usage_product_ref", &params.usage_product_ref),
        ("contract_ref", &params.contract_ref),
    ];
    let references = references.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    let zone_said = params.timezone.map(|zone| ("timezone".to_owned(), zone.name().to_owned()));
    let narrowed = references.chain(zone_said).collect();
    let given = given.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    Ok(ExplorerQuery { shown, narrowed, given })
}

/// Renders the explorer's charts and sums.
///
/// # Errors
/// Returns the problem of invalid parameters or of a failed API call.
pub(super) async fn explored(user: &SessionUser, submitted: &FormData) -> Result<Markup, Problem> {
    let ExplorerQuery { shown, narrowed, .. } = wanted(user, submitted)?;
    let answers = sums(user, &shown.summary(&narrowed)).await?;
    let totals = totals(user, &answers, &shown.totals(&narrowed)).await?;
    Ok(crate::usage_sums(&answers, totals.view(), &Span { narrowed, slots: shown.slots() }))
}

/// Renders the explorer's page.
///
/// # Errors
/// Returns the problem of invalid parameters or of a failed API call.
pub(super) async fn page(user: &SessionUser, submitted: &FormData) -> Result<PageBuilder, Problem> {
    let mut submitted = submitted.clone();
    let names = selected(user, PART, &mut submitted).await;
    let ExplorerQuery { shown, narrowed, given } = wanted(user, &submitted)?;
    let given: Vec<(&str, &str)> = pairs(&given);
    let address = address(PART, &given);
    let sums = with_page(user, "Usage", &address, explored(user, &submitted)).await?;
    shows(user, &shown.summary(&narrowed));

    let (first, last) = (shown.days.start().to_string(), shown.days.last_day().to_string());
    let caption = narrowed.iter().filter(|(name, _)| ["customer_ref", "usage_product_ref"].contains(&name.as_str()));
    let mut of_days: Vec<(&str, &str)> = caption.map(|(name, value)| (name.as_str(), value.as_str())).collect();
    of_days.extend([("from", first.as_str()), ("to", last.as_str()), ("pageSize", MOST_REFUSED), ("pageNumber", "0")]);
    let raw = crate::query(&of_days);
    let refused = listed(user, &listings::REFUSED, &raw).await?.elements;

    let explored = Explored {
        filters: filters(&given, &shown),
        names,
        days: (first, last),
        zone: shown.zone.name().to_owned(),
        interval: word(shown.interval).to_owned(),
        is_coarser: shown.is_coarser,
        elsewhere: elsewhere(&narrowed, &shown, &Calendar::of(user, PART).named()),
        refused,
    };
    let span = Span { narrowed, slots: shown.slots() };
    let body = crate::usage(&sums, &span, &explored);
    Ok(PageBuilder::of("Usage", PART, body))
}

fn filters(given: &[(&str, &str)], shown: &ExplorerRange) -> Vec<Filter> {
    let submitted = |name: &str| given.iter().find(|(submitted, _)| *submitted == name).map(|(_, value)| (*value).to_owned());
    let days = (shown.days.start().to_string(), shown.days.last_day().to_string());
    let words = ["hour", "day", "month"].map(str::to_owned).to_vec();
    let filter = |name: &str, meaning: &str, kind, value: String| Filter {
        name: name.to_owned(),
        meaning: meaning.to_owned(),
        kind,
        value,
    };
    vec![
        filter("from", "First day.", InputKind::Day, days.0),
        filter("to", "Last day.", InputKind::Day, days.1),
        filter("interval", "Length of the intervals.", InputKind::Choice(words), submitted("interval").unwrap_or_default()),
        filter("customer_ref", "Usage of this customer.", InputKind::Text, submitted("customer_ref").unwrap_or_default()),
        filter(
            "usage_product_ref",
            "Usage of this usage product.",
            InputKind::Text,
            submitted("usage_product_ref").unwrap_or_default(),
        ),
        filter("contract_ref", "Usage billed by this contract.", InputKind::Text, submitted("contract_ref").unwrap_or_default()),
        filter(
            "timezone",
            "Time zone of the days. Default: time zone of the default entity.",
            InputKind::Text,
            submitted("timezone").unwrap_or_default(),
        ),
    ]
}

/// Returns queries of the explorer for other periods with the same filters: those around the shown one, then named ones.
fn elsewhere(
    narrowed: &[(String, String)],
    shown: &ExplorerRange,
    named: &[(&'static str, Period)],
) -> Vec<(&'static str, Vec<(&'static str, String)>)> {
    const KEPT: [&str; 4] = ["customer_ref", "usage_product_ref", "contract_ref", "timezone"];
    let kept: Vec<(&'static str, String)> = KEPT
        .into_iter()
        .filter_map(|name| Some((name, narrowed.iter().find(|(submitted, _)| submitted == name)?.1.clone())))
        .collect();
    let to = |days: Period| [kept.clone(), of_days(days)].concat();
    shown.elsewhere().into_iter().chain(named.iter().copied()).map(|(name, days)| (name, to(days))).collect()
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::parse_date;

    use super::*;

    fn shown(first: &str, last: &str, interval: Option<Interval>, zone: &str) -> ExplorerRange {
        let date = |text: &str| Some(parse_date(text).expect(text));
        let (from, to) = (date(first), date(last));
        let now = Timestamp::parse("2026-11-20T12:00:00Z").expect("an instant");
        ExplorerRange::of(from, to, interval, now, TimeZone::parse(zone).expect(zone)).expect("a time")
    }

    #[test]
    fn bars_are_hours_of_few_days_and_longer_where_they_would_be_too_many() {
        for (first, last, interval, expected, is_coarser) in [
            ("2026-11-20", "2026-11-20", None, Interval::Hour, false),
            ("2026-11-18", "2026-11-20", None, Interval::Hour, false),
            ("2026-11-17", "2026-11-20", None, Interval::Day, false),
            ("2026-01-15", "2026-12-10", None, Interval::Month, false),
            ("2026-11-01", "2026-11-20", Some(Interval::Hour), Interval::Day, true),
            ("2026-11-01", "2026-11-20", Some(Interval::Month), Interval::Month, false),
        ] {
            let shown = shown(first, last, interval, "UTC");
            assert_eq!((shown.interval, shown.is_coarser), (expected, is_coarser), "{first} {last}");
            assert!(shown.slots().len() <= 93, "{first} {last}");
        }
    }

    #[test]
    fn a_bar_leads_to_its_own_days() {
        let months = shown("2026-01-15", "2026-12-10", None, "UTC").slots();
        assert_eq!(months[0].closer, Some(vec![("from", "2026-01-15".to_owned()), ("to", "2026-01-31".to_owned())]));
        assert_eq!((months[0].starts.as_str(), months[0].from.as_str()), ("2026-01-01T00:00:00Z", "2026-01-15T00:00:00Z"));
        let days = shown("2026-11-17", "2026-11-20", None, "UTC").slots();
        assert_eq!((days[3].name.as_str(), days[3].caption.as_str()), ("20 Nov", "2026-11-20"));
        let hours = shown("2026-11-20", "2026-11-20", None, "Asia/Kolkata").slots();
        assert_eq!((hours[3].caption.as_str(), &hours[3].closer), ("2026-11-20 03:00", &None), "nothing is shorter than an hour");
    }

    #[test]
    fn a_named_period_keeps_the_filters_of_the_page() {
        let narrowed = [("customer_ref".to_owned(), "acme".to_owned())];
        let days = Period::inclusive(parse_date("2026-10-01").expect("a date"), parse_date("2026-10-31").expect("a date"));
        let named = [("Last month", days.expect("a period"))];
        let periods = elsewhere(&narrowed, &shown("2026-11-11", "2026-11-20", None, "UTC"), &named);
        let expected = [("customer_ref", "acme"), ("from", "2026-10-01"), ("to", "2026-10-31")];
        let expected = expected.map(|(name, value)| (name, value.to_owned())).to_vec();
        assert_eq!(periods.last(), Some(&("Last month", expected)));
    }

    #[test]
    fn what_is_around_a_time_can_be_shown_too() {
        let places = shown("2026-11-11", "2026-11-20", None, "UTC").elsewhere();
        let caption: Vec<String> = places.iter().map(|(name, days)| format!("{name} {days}")).collect();
        assert_eq!(caption, ["Earlier 2026-11-01…2026-11-10", "Later 2026-11-21…2026-11-30", "Longer 2026-11-01…2026-11-30"]);
    }
}
