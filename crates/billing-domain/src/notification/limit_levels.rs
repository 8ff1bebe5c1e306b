//! Decides which notifications a number of a limit causes (billing rules 11).

use rust_decimal::Decimal;

use super::{Fact, FactData, LimitFact, NotificationType};
use crate::limit::{Limit, LimitLevels, LimitValue, ReachedLevels};
use crate::refs::CustomerRef;

/// A level that a number reached or left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    kind: NotificationType,
    level: Decimal,
}

/// What notifications state about a number, and the steps from what they stated before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSteps {
    reached: ReachedLevels,
    steps: Vec<Step>,
}

impl LevelSteps {
    fn new(reached: ReachedLevels, steps: Vec<Step>) -> Self {
        let is_any = reached.thresholds > 0 || reached.max_at.is_some();
        Self { reached: if is_any { reached } else { ReachedLevels::default() }, steps }
    }

    /// Returns whether there is nothing to store or to notify about the limit.
    pub fn are_none(&self, limit: &Limit) -> bool {
        self.steps.is_empty() && self.reached == limit.reached
    }

    /// Returns the limit with the reached levels, and the facts to notify.
    pub fn facts(self, number: &LimitValue, customer_ref: &CustomerRef) -> (Limit, Vec<Fact>) {
        let mut limit = Limit { reached: self.reached, ..number.limit.clone() };
        let mut facts = Vec::with_capacity(self.steps.len());
        for Step { kind, level } in self.steps {
            limit.notifications = limit.notifications.saturating_add(1);
            let number = LimitValue { limit: limit.clone(), ..number.clone() };
            let data = LimitFact { number, level, customer_ref: customer_ref.clone() };
            facts.push(Fact { kind, sequence: limit.notifications, data: FactData::Limit(Box::new(data)) });
        }
        (limit, facts)
    }
}

/// Compares a present number with the levels that notifications stated as reached. `before` has the levels before an edit, or the same
/// levels.
pub fn of_number(before: &LimitLevels, number: &LimitValue) -> LevelSteps {
    let limit = &number.limit;
    let window_start = number.window.map(|window| window.start());
    // A new service period begins at zero.
    let stated = if limit.reached.window_start == window_start { limit.reached.clone() } else { ReachedLevels::default() };
    let (thresholds, mut steps) = thresholds_reached(before, &stated, number);
    let max_at = max_reached(before, &stated, number);
    let step = |kind, levels: &LimitLevels| Step { kind, level: levels.max.unwrap_or(Decimal::ZERO) };
    match (stated.max_at, max_at) {
        (None, Some(_)) => steps.push(step(NotificationType::LimitReached, &limit.levels)),
        (Some(_), None) => steps.push(step(NotificationType::LimitCleared, before)),
        _ => {}
    }
    LevelSteps::new(ReachedLevels { window_start, thresholds, max_at }, steps)
}

/// Returns the steps after usage was rejected at a number: the maximum is reached, if notifications don't state this already.
pub fn of_rejection(number: &LimitValue) -> LevelSteps {
    let LevelSteps { mut reached, mut steps } = of_number(&number.limit.levels, number);
    if let (Some(max), None) = (number.limit.levels.max, reached.max_at) {
        reached.window_start = number.window.map(|window| window.start());
        reached.max_at = Some(number.less_credit().unwrap_or(number.value));
        steps.push(Step { kind: NotificationType::LimitReached, level: max });
    }
    LevelSteps::new(reached, steps)
}

/// Returns how many thresholds the number has reached, and the steps from the stated ones.
fn thresholds_reached(before: &LimitLevels, stated: &ReachedLevels, number: &LimitValue) -> (usize, Vec<Step>) {
    let falls = number.limit.metric.kind().falls();
    // A rising number reaches the lowest threshold first, and a falling one the highest.
    let in_order = |levels: &LimitLevels| {
        let mut levels = levels.thresholds.clone();
        if falls {
            levels.reverse();
        }
        levels
    };
    let (was, levels) = (in_order(before), in_order(&number.limit.levels));
    let was = was.get(..stated.thresholds).unwrap_or_default();
    let is_reached = |level: &Decimal| if falls { number.value <= *level } else { number.value >= *level };
    let is = &levels[..levels.partition_point(is_reached)];
    let step = |kind| move |level: &Decimal| Step { kind, level: *level };
    let cleared = was.iter().rev().filter(|level| !is.contains(level)).map(step(NotificationType::LimitCleared));
    let reached = is.iter().filter(|level| !was.contains(level)).map(step(NotificationType::LimitReached));
    (is.len(), cleared.chain(reached).collect())
}

/// Returns the number at which the maximum was reached, if it is still reached. A rejection holds until the number less the free
/// credit is lower, or the maximum is edited.
fn max_reached(before: &LimitLevels, stated: &ReachedLevels, number: &LimitValue) -> Option<Decimal> {
    let max = number.limit.levels.max?;
    let is_edited = before.max != Some(max);
    match stated.max_at {
        Some(at) if number.value > max => Some(if at > max { at } else { number.value }),
        None if number.value > max => Some(number.value),
        Some(at) if at > max || number.less_credit().is_ok_and(|number| number < at) || is_edited => None,
        stated => stated,
    }
}

#[cfg(test)]
mod tests {
    use chrono::NaiveDate;
    use uuid::Uuid;

    use super::*;
    use crate::calendar::{Period, Timestamp};
    use crate::limit::{LimitCredit, LimitMetric};
    use crate::money::Currency;
    use crate::refs::{ContractRef, CustomerId, EntityRef, LimitRef, ProductNo};

    /// A limit of a price with the steps that it was watched.
    struct Watched {
        limit: Limit,
        window: Period,
    }

    impl Watched {
        fn new(max: Option<i64>, thresholds: &[i64]) -> Self {
            let at = Timestamp::parse("2026-01-10T12:00:00Z").expect("an instant");
            let limit = Limit {
                limit_ref: LimitRef::from_uuid(Uuid::nil()),
                customer_id: CustomerId::from_uuid(Uuid::nil()),
                metric: LimitMetric::Spend {
                    contract_ref: ContractRef::from_uuid(Uuid::nil()),
                    product_no: ProductNo(0),
                    currency: Currency::from_code("EUR").expect("a currency"),
                },
                levels: levels(max, thresholds),
                reached: ReachedLevels::default(),
                notifications: 0,
                created_at: at,
                updated_at: at,
            };
            Self { limit, window: month(1) }
        }

        fn number(&self, value: i64) -> LimitValue {
            LimitValue::new(self.limit.clone(), (Some(self.window), true), (Decimal::from(value), Decimal::ZERO))
                .expect("a small number")
        }

        /// Carries the number to a value. Returns the steps as texts.
        fn at(&mut self, value: i64) -> String {
            let before = self.limit.levels.clone();
            self.edited(&before, value)
        }

        fn edited(&mut self, before: &LimitLevels, value: i64) -> String {
            let number = self.number(value);
            self.take(&number, of_number(before, &number))
        }

        fn rejected_at(&mut self, value: i64) -> String {
            let number = self.number(value);
            self.take(&number, of_rejection(&number))
        }

        fn take(&mut self, number: &LimitValue, steps: LevelSteps) -> String {
            let (limit, facts) = steps.facts(number, &CustomerRef::parse("acme").expect("a reference"));
            assert_eq!(limit.notifications, self.limit.notifications + facts.len() as u64);
            self.limit = limit;
            let text = |fact: Fact| {
                let FactData::Limit(data) = fact.data else { panic!("another fact") };
                format!("{} {}", if fact.kind == NotificationType::LimitReached { "reached" } else { "cleared" }, data.level)
            };
            facts.into_iter().map(text).collect::<Vec<_>>().join(", ")
        }
    }

    fn levels(max: Option<i64>, thresholds: &[i64]) -> LimitLevels {
        LimitLevels { max: max.map(Decimal::from), thresholds: thresholds.iter().map(|level| Decimal::from(*level)).collect() }
    }

    fn month(month: u32) -> Period {
        let day = |month| NaiveDate::from_ymd_opt(2026, month, 1).expect("a day");
        Period::new(day(month), day(month + 1)).expect("a month")
    }

    #[test]
    fn each_threshold_notifies_once_on_the_way_up_and_once_on_the_way_down() {
        let mut watched = Watched::new(None, &[50, 80, 100]);
        assert_eq!(watched.at(45), "");
        assert_eq!(watched.at(85), "reached 50, reached 80");
        assert_eq!(watched.at(79), "cleared 80");
        assert_eq!(watched.at(90), "reached 80");
        assert_eq!(watched.at(90), "");
        assert_eq!(watched.at(100), "reached 100");
        // The next period begins at zero, and clears nothing.
        watched.window = month(2);
        assert_eq!(watched.at(0), "");
        assert_eq!(watched.limit.reached, ReachedLevels::default());
        assert_eq!(watched.at(50), "reached 50");
    }

    #[test]
    fn thresholds_of_free_credit_are_reached_on_the_way_down() {
        let mut watched = Watched::new(None, &[5, 20, 50]);
        let (entity_ref, currency) =
            (EntityRef::parse("us").expect("a reference"), Currency::from_code("EUR").expect("a currency"));
        watched.limit.metric = LimitMetric::Prepaid { entity_ref, currency };
        for (value, steps) in [
            (100, ""),
            (21, "reached 50"),
            (20, "reached 20"),
            (20, ""),
            (0, "reached 5"),
            (49, "cleared 5, cleared 20"),
            (51, "cleared 50"),
            (5, "reached 50, reached 20, reached 5"),
        ] {
            assert_eq!(watched.at(value), steps, "{value}");
        }
        let before = std::mem::replace(&mut watched.limit.levels, levels(None, &[4, 20]));
        assert_eq!(watched.edited(&before, 5), "cleared 5, cleared 50");
    }

    #[test]
    fn the_maximum_is_reached_above_it_and_cleared_at_it() {
        let mut watched = Watched::new(Some(100), &[]);
        assert_eq!(watched.at(100), "");
        assert_eq!(watched.at(102), "reached 100");
        assert_eq!(watched.at(150), "");
        assert_eq!(watched.at(101), "");
        assert_eq!(watched.at(100), "cleared 100");
    }

    #[test]
    fn a_rejection_reaches_the_maximum_until_the_number_is_lower() {
        let mut watched = Watched::new(Some(100), &[]);
        assert_eq!(watched.rejected_at(95), "reached 100");
        assert_eq!(watched.rejected_at(95), "");
        assert_eq!(watched.at(98), "");
        assert_eq!(watched.at(95), "");
        assert_eq!(watched.at(94), "cleared 100");
        // Above the maximum, what counts is the maximum.
        assert_eq!(watched.rejected_at(94), "reached 100");
        assert_eq!(watched.at(120), "");
        assert_eq!(watched.at(100), "cleared 100");
        // What was reached in another period doesn't count.
        assert_eq!(watched.rejected_at(100), "reached 100");
        watched.window = month(2);
        assert_eq!(watched.rejected_at(20), "reached 100");
    }

    #[test]
    fn an_edit_notifies_what_it_reaches_and_what_it_clears() {
        let mut watched = Watched::new(Some(100), &[50]);
        assert_eq!(watched.at(110), "reached 50, reached 100");
        for (max, thresholds, steps) in [
            (Some(200), &[50, 60][..], "reached 60, cleared 100"),
            (Some(110), &[60, 120], "cleared 50"),
            (Some(100), &[120], "cleared 60, reached 100"),
            (None, &[110], "reached 110, cleared 100"),
        ] {
            let before = std::mem::replace(&mut watched.limit.levels, levels(max, thresholds));
            assert_eq!(watched.edited(&before, 110), steps);
        }
        let mut rejected = Watched::new(Some(100), &[]);
        assert_eq!(rejected.rejected_at(95), "reached 100");
        let before = std::mem::replace(&mut rejected.limit.levels, levels(Some(99), &[]));
        assert_eq!(rejected.edited(&before, 95), "cleared 100");
    }

    #[test]
    fn a_rejection_is_cleared_when_more_credit_is_free() {
        let mut watched = Watched::new(Some(0), &[]);
        let with_credit = |watched: &Watched, credit: i64| {
            let number = LimitValue::new(watched.limit.clone(), (Some(watched.window), true), (Decimal::ZERO, Decimal::ZERO));
            let credit = LimitCredit { free: Decimal::from(credit), held: Decimal::from(credit) };
            number.and_then(|number| number.with_credit(credit)).expect("a small number")
        };
        let rejected = of_rejection(&with_credit(&watched, 1));
        assert_eq!(rejected.reached.max_at, Some(Decimal::NEGATIVE_ONE));
        watched.limit.reached = rejected.reached;
        for (credit, is_cleared) in [(0, false), (1, false), (2, true)] {
            let steps = of_number(&watched.limit.levels, &with_credit(&watched, credit));
            assert_eq!(steps.reached.max_at.is_none(), is_cleared, "{credit}");
        }
    }
}
