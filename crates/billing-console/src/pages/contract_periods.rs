//! The choice of where the periods of a product begin.

use billing_domain::calendar::{Date, first_of_month, plus_months};

use crate::TaskField;

/// Name of the field.
pub(super) const PERIODS: &str = "periods";
/// On the day of the month of the first day.
const FROM_START: &str = "start";
/// On the first day of a month.
const CALENDAR: &str = "calendar";
/// Up to the end of the contract, with the periods of its other products.
pub(super) const AS_CONTRACT: &str = "contract";

/// Returns the choice with which the form begins.
pub(super) const fn default(is_new: bool) -> &'static str {
    if is_new { FROM_START } else { AS_CONTRACT }
}

/// Returns the field with the choice.
pub(super) fn field(is_new: bool, value: String) -> TaskField {
    let choices = [
        (AS_CONTRACT, "As the other products of the contract"),
        (FROM_START, "From the first day: a contract from the 15th has periods from the 15th"),
        (CALENDAR, "Calendar months: the first period ends with the month, and its fees are prorated"),
    ];
    let hint = "With calendar months, an advance invoice for a first part of a month comes with that of the next month.";
    TaskField::radios("Periods", PERIODS, &choices[usize::from(is_new)..], value).hint(hint)
}

/// Returns the day from which periods are counted, or `None` if they are counted from the last day. `is_of_years` states whether
/// the days are a whole number of years.
pub(super) fn issue_day(periods: &str, (first, last): (Date, Date), is_of_years: bool) -> Option<Date> {
    let month = first_of_month(first);
    let anchor = match periods {
        CALENDAR if month != first => plus_months(month, 1),
        CALENDAR | FROM_START => first,
        _ => return None,
    };
    // Counted from the end of a whole number of years, the periods are the same.
    let is_same = anchor == first && is_of_years;
    (anchor <= last && !is_same).then_some(anchor)
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::parse_date;

    use super::*;

    #[test]
    fn periods_begin_with_the_first_day_or_with_a_month() {
        let day = |text: &str| parse_date(text).expect(text);
        for (periods, first, last, is_of_years, expected) in [
            (FROM_START, "2026-01-15", "2027-01-14", true, None),
            (FROM_START, "2026-01-15", "2099-12-31", false, Some("2026-01-15")),
            (CALENDAR, "2026-01-15", "2027-01-14", true, Some("2026-02-01")),
            (CALENDAR, "2026-02-01", "2027-01-31", true, None),
            (CALENDAR, "2026-12-31", "2099-12-31", false, Some("2027-01-01")),
            (CALENDAR, "2026-01-15", "2026-01-20", false, None),
            (AS_CONTRACT, "2026-01-15", "2099-12-31", false, None),
        ] {
            let found = issue_day(periods, (day(first), day(last)), is_of_years);
            assert_eq!(found, expected.map(day), "{periods} {first}");
        }
    }
}
