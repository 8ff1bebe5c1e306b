//! Billing periods of a product (billing rules 1). This module handles only days: no money, no usage and no clock.

use chrono::{Datelike, NaiveDate};

use crate::calendar::{Period, plus_months};
use crate::money::DayShare;
use crate::violation::Violations;

/// The maximum number of units of a billing cycle.
pub const MAX_CYCLE: u16 = 1200;

/// The unit of a billing cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CycleUnit {
    /// One period over the whole range.
    OneTime,
    /// One month.
    #[default]
    Monthly,
    /// Three months.
    Quarterly,
    /// Twelve months.
    Yearly,
}

/// The length of a billing period: `unit × cycle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BillingCycle {
    unit: CycleUnit,
    count: u16,
}

impl Default for BillingCycle {
    fn default() -> Self {
        Self { unit: CycleUnit::Monthly, count: 1 }
    }
}

impl BillingCycle {
    /// Creates a cycle of 1 to [`MAX_CYCLE`] units. Returns `None` for any other count.
    pub fn new(unit: CycleUnit, count: u16) -> Option<Self> {
        (1..=MAX_CYCLE).contains(&count).then_some(Self { unit, count })
    }

    /// Returns the unit.
    pub const fn unit(self) -> CycleUnit {
        self.unit
    }

    /// Returns the number of units.
    pub const fn count(self) -> u16 {
        self.count
    }

    /// Returns the length in months, or `None` for `ONE_TIME`.
    fn months(self) -> Option<i64> {
        let of_unit = match self.unit {
            CycleUnit::OneTime => return None,
            CycleUnit::Monthly => 1,
            CycleUnit::Quarterly => 3,
            CycleUnit::Yearly => 12,
        };
        Some(of_unit * i64::from(self.count))
    }
}

/// The range, cycle and anchor of a product's billing periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BillingSchedule {
    range: Period,
    cycle: BillingCycle,
    issue_day: Option<NaiveDate>,
    /// The anchor, only if the other fields do not determine it.
    fixed_anchor: Option<NaiveDate>,
}

/// A billing period: its billed days and the whole period that contains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BillingPeriod {
    span: Period,
    nominal: Period,
}

impl BillingPeriod {
    /// Returns the billed days.
    pub const fn span(self) -> Period {
        self.span
    }

    /// Returns the whole period between two boundaries of the schedule.
    pub const fn nominal(self) -> Period {
        self.nominal
    }

    /// Returns whether the billed days are fewer than the days of the whole period.
    pub fn is_partial(self) -> bool {
        self.span != self.nominal
    }

    /// Returns the billed share of a whole period's price (billing rules 1.5).
    pub fn share(self) -> DayShare {
        DayShare { days: self.span.days(), of: self.nominal.days() }
    }

    /// Restricts the period to the days within a range. Returns `None` if no day is left.
    pub fn clip(self, range: Period) -> Option<Self> {
        self.span.intersection(range).map(|span| Self { span, ..self })
    }
}

impl BillingSchedule {
    /// Creates a schedule from the first and last billed day.
    ///
    /// # Errors
    /// Returns violations of `billing_end_date` and `issue_day` (billing rules 1.4).
    pub fn new(first: NaiveDate, last: NaiveDate, cycle: BillingCycle, issue_day: Option<NaiveDate>) -> Result<Self, Violations> {
        let Some(range) = Period::inclusive(first, last) else {
            return Err(Violations::one(
                &["billing_end_date"],
                "out_of_range",
                format!("must not be before billing_start_date, {first}"),
            ));
        };
        let schedule = Self { range, cycle, issue_day, fixed_anchor: None };
        schedule.check_issue_day()?;
        Ok(schedule)
    }

    /// Creates a schedule with a fixed anchor. Boundaries are counted from the anchor, independent of the last day and
    /// `issue_day` (billing rules 1.3).
    ///
    /// # Errors
    /// Returns a violation of `billing_end_date` if the last day is before the first day.
    pub fn anchored(
        (first, last): (NaiveDate, NaiveDate),
        cycle: BillingCycle,
        issue_day: Option<NaiveDate>,
        anchor: NaiveDate,
    ) -> Result<Self, Violations> {
        let schedule = Self { issue_day, ..Self::new(first, last, cycle, None)? };
        let says_so = schedule.check_issue_day().is_ok() && schedule.anchor() == anchor;
        Ok(Self { fixed_anchor: (!says_so).then_some(anchor), ..schedule })
    }

    fn check_issue_day(&self) -> Result<(), Violations> {
        let (first, end) = (self.range.start(), self.range.end());
        match self.issue_day.filter(|day| *day < first || *day > end) {
            None => Ok(()),
            Some(_) => Err(Violations::one(&["issue_day"], "out_of_range", format!("must be from {first} to {end}"))),
        }
    }

    /// Returns the schedule with another first and last day. With `keeps_anchor`, no boundary moves; otherwise the anchor is
    /// recomputed (billing rules 1.3).
    ///
    /// A `ONE_TIME` schedule that keeps its anchor never ends later than its original period.
    ///
    /// # Errors
    /// Returns violations of `billing_end_date` and `issue_day`.
    pub fn over(self, first: NaiveDate, last: NaiveDate, keeps_anchor: bool) -> Result<Self, Violations> {
        match (keeps_anchor, self.cycle.months()) {
            (false, _) => Self::new(first, last, self.cycle, self.issue_day),
            (true, None) => {
                let latest = self.anchor().pred_opt().unwrap_or(last);
                Self::anchored((first, last.min(latest)), self.cycle, self.issue_day, self.anchor())
            }
            (true, Some(_)) => Self::anchored((first, last), self.cycle, self.issue_day, self.anchor()),
        }
    }

    /// Returns the schedule with another cycle or `issue_day`. A new `issue_day` moves the anchor, a new cycle does not
    /// (billing rules 1.3).
    ///
    /// # Errors
    /// Returns a violation if the new `issue_day` is outside the range.
    pub fn rescheduled(self, cycle: BillingCycle, issue_day: Option<NaiveDate>) -> Result<Self, Violations> {
        let days = (self.range.start(), self.range.last_day());
        let is_one_time = cycle.months().is_none();
        if issue_day != self.issue_day {
            Self { issue_day, ..self }.check_issue_day()?;
            if !is_one_time {
                return Self::new(days.0, days.1, cycle, issue_day);
            }
        }
        let becomes_one_time = is_one_time && self.cycle.months().is_some();
        Self::anchored(days, cycle, issue_day, if becomes_one_time { self.range.end() } else { self.anchor() })
    }

    /// Returns the schedule without its end. The result determines the period boundaries.
    pub(super) fn endless(self) -> Self {
        let range = Period::new(self.range.start(), NaiveDate::MAX).unwrap_or(self.range);
        Self { range, fixed_anchor: Some(self.anchor()), ..self }
    }

    /// Returns all billed days.
    pub const fn range(&self) -> Period {
        self.range
    }

    /// Returns the cycle.
    pub const fn cycle(&self) -> BillingCycle {
        self.cycle
    }

    /// Returns the date of the first invoice, if stated.
    pub const fn issue_day(&self) -> Option<NaiveDate> {
        self.issue_day
    }

    /// Returns the day from which boundaries are counted. For a `ONE_TIME` schedule, this is the day after its whole
    /// period.
    pub fn anchor(&self) -> NaiveDate {
        let issue_day = self.issue_day.filter(|_| self.cycle.months().is_some());
        self.fixed_anchor.or(issue_day).unwrap_or(self.range.end())
    }

    /// Returns the anchor if range, cycle and `issue_day` do not determine it.
    pub const fn fixed_anchor(&self) -> Option<NaiveDate> {
        self.fixed_anchor
    }

    /// Returns the period that contains a day, or `None` outside the range.
    pub fn period_at(&self, date: NaiveDate) -> Option<BillingPeriod> {
        if !self.range.contains(date) {
            return None;
        }
        let nominal = match self.cycle.months() {
            None => Period::new(self.range.start(), self.anchor())?,
            Some(months) => self.nominal_at(date, months)?,
        };
        BillingPeriod { span: nominal, nominal }.clip(self.range)
    }

    /// Returns the first day of the first period that begins on or after a day. A day without a period is returned unchanged.
    pub(super) fn period_start_from(&self, day: NaiveDate) -> NaiveDate {
        match self.period_at(day) {
            Some(period) if period.span.start() < day => period.span.end(),
            _ => day,
        }
    }

    /// Returns all periods, first to last. They partition the range (billing rules 1.2).
    pub fn periods(&self) -> impl Iterator<Item = BillingPeriod> + '_ {
        std::iter::successors(self.period_at(self.range.start()), |period| self.period_at(period.span().end()))
    }

    /// Returns the whole period that contains a day. Boundaries are counted from the anchor, never from the previous
    /// boundary (billing rules 1.3).
    fn nominal_at(&self, date: NaiveDate, months: i64) -> Option<Period> {
        let anchor = self.anchor();
        let boundary = |k: i64| plus_months(anchor, k * months);
        let apart = i64::from(date.year() - anchor.year()) * 12 + i64::from(date.month()) - i64::from(anchor.month());
        let mut k = apart.div_euclid(months);
        while boundary(k) > date {
            k -= 1;
        }
        while boundary(k + 1) <= date {
            k += 1;
        }
        Period::new(boundary(k), boundary(k + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::calendar::{parse_date, plus_days};

    fn date(text: &str) -> NaiveDate {
        parse_date(text).expect(text)
    }

    fn schedule(first: &str, last: &str, unit: CycleUnit, issue_day: Option<&str>) -> BillingSchedule {
        let cycle = BillingCycle::new(unit, 1).expect("a cycle");
        BillingSchedule::new(date(first), date(last), cycle, issue_day.map(date)).expect("a schedule")
    }

    /// Formats periods as in the billing rules: `first…last`, followed by the share of a partial period.
    fn shown(schedule: &BillingSchedule) -> Vec<String> {
        let show = |p: BillingPeriod| {
            let share = p.share();
            let partial = if p.is_partial() { format!(" ({}/{})", share.days, share.of) } else { String::new() };
            format!("{}{partial}", p.span())
        };
        schedule.periods().map(show).collect()
    }

    #[test]
    fn the_table_of_billing_rules_1() {
        use CycleUnit::{Monthly, Quarterly, Yearly};
        let rows: [(BillingSchedule, &[&str]); 5] = [
            (
                schedule("2026-01-15", "2026-04-30", Monthly, None),
                &["2026-01-15…2026-01-31 (17/31)", "2026-02-01…2026-02-28", "2026-03-01…2026-03-31", "2026-04-01…2026-04-30"],
            ),
            (
                schedule("2026-01-15", "2026-04-30", Monthly, Some("2026-02-15")),
                &["2026-01-15…2026-02-14", "2026-02-15…2026-03-14", "2026-03-15…2026-04-14", "2026-04-15…2026-04-30 (16/30)"],
            ),
            (
                schedule("2027-11-30", "2028-03-29", Monthly, None),
                &["2027-11-30…2027-12-29", "2027-12-30…2028-01-29", "2028-01-30…2028-02-28", "2028-02-29…2028-03-29"],
            ),
            (
                schedule("2026-01-01", "2026-12-31", Quarterly, None),
                &["2026-01-01…2026-03-31", "2026-04-01…2026-06-30", "2026-07-01…2026-09-30", "2026-10-01…2026-12-31"],
            ),
            (schedule("2024-02-29", "2026-02-27", Yearly, None), &["2024-02-29…2025-02-27 (365/366)", "2025-02-28…2026-02-27"]),
        ];
        for (schedule, expected) in rows {
            assert_eq!(shown(&schedule), expected);
        }
    }

    #[test]
    fn a_one_time_product_has_one_whole_period() {
        assert_eq!(shown(&schedule("2026-01-15", "2031-03-02", CycleUnit::OneTime, None)), ["2026-01-15…2031-03-02"]);
    }

    #[test]
    fn the_issue_day_lies_in_the_range_or_on_the_day_after() {
        let cycle = BillingCycle::default();
        let (first, last) = (date("2026-01-15"), date("2026-04-30"));
        for (day, fits) in [("2026-01-14", false), ("2026-01-15", true), ("2026-05-01", true), ("2026-05-02", false)] {
            assert_eq!(BillingSchedule::new(first, last, cycle, Some(date(day))).is_ok(), fits, "{day}");
        }
        assert!(BillingSchedule::new(last, first, cycle, None).is_err());
    }

    fn any_schedule() -> impl Strategy<Value = (BillingSchedule, NaiveDate)> {
        let units =
            prop_oneof![Just(CycleUnit::Monthly), Just(CycleUnit::Quarterly), Just(CycleUnit::Yearly), Just(CycleUnit::OneTime)];
        (0u32..36_000, 1u32..2_000, units, 1u16..15, proptest::option::of(0u32..2_001)).prop_map(
            |(from, days, unit, count, issue)| {
                let first = plus_days(date("1990-01-01"), from);
                let last = plus_days(first, days - 1);
                let issue_day = issue.map(|offset| plus_days(first, offset % (days + 1)));
                let cycle = BillingCycle::new(unit, count).expect("a cycle");
                let schedule = BillingSchedule::new(first, last, cycle, issue_day).expect("a schedule");
                (schedule, issue_day.unwrap_or(schedule.range().end()))
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn periods_partition_the_range_on_anchored_boundaries((schedule, anchor) in any_schedule()) {
            let periods: Vec<_> = schedule.periods().collect();
            let mut next = schedule.range().start();
            for period in &periods {
                prop_assert_eq!(period.span().start(), next);
                next = period.span().end();
                // A boundary inside the range has the anchor's day of the month, or is the last day of the month.
                if schedule.cycle().unit() != CycleUnit::OneTime && next != schedule.range().end() {
                    let month_end = plus_days(next, 1).month() != next.month();
                    prop_assert!(next.day() == anchor.day() || (month_end && next.day() < anchor.day()));
                }
                prop_assert!(period.share().days <= period.share().of);
            }
            prop_assert_eq!(next, schedule.range().end());
            let inner = periods.len().saturating_sub(1);
            prop_assert!(periods.iter().take(inner).skip(1).all(|p| !p.is_partial()));
        }

        #[test]
        fn every_day_is_in_exactly_one_period((schedule, _) in any_schedule(), offset in 0u32..2_000) {
            let day = plus_days(schedule.range().start(), offset % schedule.range().days());
            let holding: Vec<_> = schedule.periods().filter(|p| p.span().contains(day)).collect();
            prop_assert_eq!(holding.len(), 1);
            prop_assert_eq!(schedule.period_at(day), Some(holding[0]));
        }
    }
}
