//! Periods and references in the addresses of lists. Addresses have named periods, dates, names and numbers; the API has dates,
//! instants and references.

use crate::{Filter, InputKind, JsonView, NamedPeriod, View, period_filters, selected_part};
use billing_api::console::FormData;
use billing_api::dto::search::SearchResultJson;
use billing_api::operations::Search;
use billing_application::error::UseCaseError;
use billing_domain::calendar::{Date, Period, TimeZone, Timestamp, day_after, minus_days, parse_date, plus_months};
use billing_domain::violation::Violations;

use super::form_data::field;
use super::session_user::SessionUser;
use billing_api::problem::Problem;

/// A named period: its word, label, length in months, and the number of such periods from the current one.
const PERIODS: &[(&str, &str, i64, i64)] = &[
    ("this_month", "This month", 1, 0),
    ("last_month", "Last month", 1, -1),
    ("this_quarter", "This quarter", 3, 0),
    ("last_quarter", "Last quarter", 3, -1),
    ("this_year", "This year", 12, 0),
    ("last_year", "Last year", 12, -1),
];

/// Filters outside the period whose API value is an instant. A date means its start.
const INSTANTS: &[&str] = &["updated_since", "issues_before"];

/// Parts of the console and the kinds of search results that have them.
const KINDS: &[(&str, &str)] = &[
    ("customers", "CUSTOMER"),
    ("contracts", "CONTRACT"),
    ("documents", "DOCUMENT"),
    ("entities", "ENTITY"),
    ("pricings", "PRICING"),
    ("usage-products", "USAGE_PRODUCT"),
];

/// The calendar in which the addresses of a list are read.
#[derive(Clone, Copy)]
pub(super) struct Calendar {
    part: &'static str,
    today: Date,
    zone: TimeZone,
}

/// The filters of a list in the form of the API.
pub(super) struct ListQuery {
    /// Query parameters.
    pub(super) filters: FormData,
    /// Names of the selected objects, by query parameter.
    pub(super) names: FormData,
}

impl Calendar {
    /// Returns today's calendar of the visitor for a part of the console.
    pub(super) fn of(user: &SessionUser, part: &'static str) -> Self {
        let zone = user.zone;
        Self { part, today: zone.service_date(user.now()), zone }
    }

    /// Returns the filters with dates and instants instead of a named period and dates.
    ///
    /// # Errors
    /// Returns a problem for an unknown period.
    pub(super) fn resolve(self, submitted: &FormData) -> Result<FormData, Problem> {
        let is_of_page = |name: &str| [NamedPeriod::PARAMETER, View::SELECTED].contains(&name);
        let mut filters: FormData = submitted.iter().filter(|(name, _)| !is_of_page(name)).cloned().collect();
        if let (Some(period), Some(word)) = (period_filters(self.part), field(submitted, NamedPeriod::PARAMETER)) {
            let (first, last) = self.days(word).ok_or_else(|| unknown_period(word))?;
            filters.retain(|(name, _)| ![period.from, period.to].contains(&name.as_str()));
            filters.push((period.from.to_owned(), first.to_string()));
            filters.push((period.to.to_owned(), last.to_string()));
        }
        for (name, value) in &mut filters {
            if let Some(instant) = self.instant(name, value) {
                *value = instant;
            }
        }
        Ok(filters)
    }

    /// Returns the filters as a form shows them: instants at midnight as dates.
    pub(super) fn shown(self, filters: Vec<Filter>) -> Vec<Filter> {
        let shown = |mut filter: Filter| {
            if let Some(is_end) = self.bound(&filter.name) {
                let day = self.day(&filter.value, is_end);
                if filter.value.is_empty() || day.is_some() {
                    filter.kind = InputKind::Day;
                    filter.value = day.map(|day| day.to_string()).unwrap_or_default();
                }
            }
            filter
        };
        filters.into_iter().map(shown).collect()
    }

    /// Returns the named periods. `filters` are the resolved ones, of which at most one period is the current one.
    pub(super) fn periods(self, filters: &FormData) -> Vec<NamedPeriod> {
        let Some(of) = period_filters(self.part) else { return Vec::new() };
        let has = |name: &str, day: Date| {
            let value = field(filters, name);
            let expected = self.instant(name, &day.to_string()).unwrap_or_else(|| day.to_string());
            value == Some(expected.as_str())
        };
        let period = |&(word, label, ..): &(&'static str, &'static str, i64, i64)| {
            let is_shown = self.days(word).is_some_and(|(first, last)| has(of.from, first) && has(of.to, last));
            NamedPeriod { word, label, is_shown }
        };
        PERIODS.iter().map(period).collect()
    }

    /// Returns the labels and the days of the named periods.
    pub(super) fn named(self) -> Vec<(&'static str, Period)> {
        let period = |(word, label, ..): &(&'static str, &'static str, i64, i64)| {
            let (first, last) = self.days(word)?;
            Some((*label, Period::inclusive(first, last)?))
        };
        PERIODS.iter().filter_map(period).collect()
    }

    /// Returns the first and the last day of a named period.
    fn days(self, word: &str) -> Option<(Date, Date)> {
        let (_, _, months, offset) = PERIODS.iter().find(|(known, ..)| *known == word)?;
        let month: i64 = self.today.format("%-m").to_string().parse().ok()?;
        let first_of_month = parse_date(&self.today.format("%Y-%m-01").to_string()).ok()?;
        let first = plus_months(first_of_month, offset * months - (month - 1) % months);
        Some((first, minus_days(plus_months(first, *months), 1)))
    }

    /// Returns whether an instant is the exclusive end of a period, or `None` if the API's value of the filter is no instant.
    fn bound(self, name: &str) -> Option<bool> {
        let of_period = period_filters(self.part).filter(|period| period.of_instants);
        match of_period {
            Some(period) if name == period.to => Some(true),
            Some(period) if name == period.from => Some(false),
            _ => INSTANTS.contains(&name).then_some(false),
        }
    }

    /// Returns the instant for a filter whose value is a date.
    fn instant(self, name: &str, value: &str) -> Option<String> {
        let is_end = self.bound(name)?;
        let day = parse_date(value).ok()?;
        Some(self.zone.start_of_day(if is_end { day_after(day) } else { day }).to_string())
    }

    /// Returns the date that stands for an instant, if it is the start of a day.
    fn day(self, instant: &str, is_end: bool) -> Option<Date> {
        let at = Timestamp::parse(instant).ok()?;
        let day = self.zone.service_date(at);
        let is_start = self.zone.start_of_day(day).as_micros() == at.as_micros();
        is_start.then(|| if is_end { minus_days(day, 1) } else { day })
    }
}

/// Returns the filters of a list in the form of the API.
///
/// # Errors
/// Returns a problem for an unknown period.
pub(super) async fn list_query(user: &SessionUser, part: &'static str, submitted: &FormData) -> Result<ListQuery, Problem> {
    let mut filters = Calendar::of(user, part).resolve(submitted)?;
    let names = selected(user, part, &mut filters).await;
    Ok(ListQuery { filters, names })
}

/// Replaces names and numbers by the references of their objects, and returns the names of the selected objects. Values that
/// identify no single object stay as they are.
pub(super) async fn selected(user: &SessionUser, part: &str, filters: &mut FormData) -> FormData {
    let mut names = FormData::new();
    for (name, value) in filters {
        let Some(of) = selected_part(part, name).filter(|_| !value.trim().is_empty()) else { continue };
        let found = search(user, of, value.trim()).await;
        if let Some((reference, label)) = found {
            names.push((name.clone(), label));
            *value = reference;
        }
    }
    names
}

/// Finds the object with a reference, number or name. Returns its reference and its name or number.
async fn search(user: &SessionUser, part: &str, sought: &str) -> Option<(String, String)> {
    let (_, kind) = KINDS.iter().find(|(of, _)| *of == part)?;
    let raw = crate::query(&[("q", sought)]);
    // Without the permission to search, only references select objects.
    let found = user.quietly().get_with::<Search>("", &raw).await.ok()?;
    matching(found.view(), kind, sought)
}

fn matching(found: JsonView<'_, Vec<SearchResultJson>>, kind: &str, sought: &str) -> Option<(String, String)> {
    let of_kind: Vec<JsonView<'_, SearchResultJson>> = found.items().filter(|hit| hit.kind().is(kind)).collect();
    let identified = of_kind.iter().find(|hit| hit.reference().is(sought) || hit.number().is(sought));
    let hit = match identified {
        Some(hit) => hit,
        None => {
            let mut named = of_kind.iter().filter(|hit| hit.name().to_text().to_lowercase() == sought.to_lowercase());
            named.next().filter(|_| named.next().is_none())?
        }
    };
    let label = [hit.number().to_text(), hit.name().to_text()].into_iter().find(|label| !label.is_empty());
    Some((hit.reference().to_text(), label.unwrap_or_default()))
}

fn unknown_period(word: &str) -> Problem {
    let known: Vec<&str> = PERIODS.iter().map(|(word, ..)| *word).collect();
    let detail = format!("must be one of {}, not {word}", known.join(", "));
    Problem::from(UseCaseError::Invalid(Violations::one(&[NamedPeriod::PARAMETER], "invalid_value", detail)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn calendar(part: &'static str, today: &str, zone: &str) -> Calendar {
        Calendar { part, today: parse_date(today).expect(today), zone: TimeZone::parse(zone).expect(zone) }
    }

    fn pairs(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_named_period_moves_with_the_calendar() {
        for (today, word, first, last) in [
            ("2026-11-26", "this_month", "2026-11-01", "2026-11-30"),
            ("2026-01-31", "last_month", "2025-12-01", "2025-12-31"),
            ("2026-11-26", "this_quarter", "2026-10-01", "2026-12-31"),
            ("2026-02-15", "last_quarter", "2025-10-01", "2025-12-31"),
            ("2026-12-31", "this_year", "2026-01-01", "2026-12-31"),
            ("2026-01-01", "last_year", "2025-01-01", "2025-12-31"),
        ] {
            let days = calendar("documents", today, "UTC").days(word).map(|(first, last)| (first.to_string(), last.to_string()));
            assert_eq!(days, Some((first.to_owned(), last.to_owned())), "{word} on {today}");
        }
    }

    #[test]
    fn a_period_of_documents_is_of_dates_and_one_of_events_of_instants_in_the_time_zone() {
        let submitted = pairs(&[("period", "last_month"), ("issued_from", "2020-01-01"), ("state", "PAID")]);
        let documents = calendar("documents", "2026-11-26", "Europe/Berlin");
        let resolved = documents.resolve(&submitted).expect("a known period");
        assert_eq!(resolved, pairs(&[("state", "PAID"), ("issued_from", "2026-10-01"), ("issued_to", "2026-10-31")]));
        let shown: Vec<&str> =
            documents.periods(&resolved).iter().filter(|period| period.is_shown).map(|period| period.word).collect();
        assert_eq!(shown, ["last_month"]);

        let events = calendar("events", "2026-11-26", "Europe/Berlin");
        let resolved = events.resolve(&pairs(&[("period", "last_month")])).expect("a known period");
        assert_eq!(resolved, pairs(&[("from", "2026-09-30T22:00:00Z"), ("to", "2026-10-31T23:00:00Z")]));
        let filter = |(name, value): &(String, String)| Filter {
            name: name.clone(),
            meaning: String::new(),
            kind: InputKind::Text,
            value: value.clone(),
        };
        let shown = events.shown(resolved.iter().map(filter).collect());
        let shown: Vec<(&str, bool)> =
            shown.iter().map(|filter| (filter.value.as_str(), filter.kind == InputKind::Day)).collect();
        assert_eq!(shown, [("2026-10-01", true), ("2026-10-31", true)]);
        // An instant within a day stays as it is.
        let exact = pairs(&[("from", "2026-10-01T08:30:00Z")]);
        assert_eq!(events.resolve(&exact).expect("no period"), exact);
        assert_eq!(events.shown(exact.iter().map(filter).collect())[0].kind, InputKind::Text);
    }

    #[test]
    fn an_unknown_period_is_rejected_with_the_known_ones() {
        let problem =
            calendar("documents", "2026-11-26", "UTC").resolve(&pairs(&[("period", "yesterday")])).expect_err("unknown");
        assert!(problem.errors()[0].detail.contains("this_month"), "{:?}", problem.errors()[0].detail);
    }

    #[test]
    fn a_name_selects_an_object_only_if_no_other_has_it() {
        let hit = |reference: &str, name: &str| json!({"kind": "CUSTOMER", "ref": reference, "number": null, "name": name});
        let found = json!([hit("acme", "Acme Ltd"), hit("a-2", "Twin"), hit("a-3", "twin"), {"kind": "ENTITY", "ref": "x", "number": null, "name": "X"}]);
        let matching = |sought| matching(JsonView::of(&found), "CUSTOMER", sought);
        let acme = Some(("acme".to_owned(), "Acme Ltd".to_owned()));
        assert_eq!((matching("acme"), matching("ACME ltd")), (acme.clone(), acme));
        assert_eq!((matching("Twin"), matching("x"), matching("nobody")), (None, None, None));
        let contract = json!([{"kind": "CONTRACT", "ref": "01a2", "number": "C-28", "name": null}]);
        assert_eq!(super::matching(JsonView::of(&contract), "CONTRACT", "C-28"), Some(("01a2".to_owned(), "C-28".to_owned())));
    }
}
