//! Exact numbers for charts and totals: integers in billionths, parsed from decimal text without floating point.

use crate::parts::grouped;

/// Billionths per unit. No quantity or amount has a finer resolution.
pub(crate) const ONE: i128 = 1_000_000_000;
const FRACTION_DIGITS: usize = 9;
/// Upper limit of axis values, above any sum. It keeps calculations within 128 bits.
const LARGEST: i128 = 1_000_000_000_000_000_000_000_000_000_000;
/// Approximate number of axis steps.
const STEPS: i128 = 4;

/// Parses a decimal in billionths; returns `None` for other text.
pub(crate) fn billionths(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !whole.is_empty() && [whole, fraction].iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_number {
        return None;
    }
    let fraction = format!("{:0<FRACTION_DIGITS$}", &fraction[..fraction.len().min(FRACTION_DIGITS)]);
    let whole: i128 = whole.parse().ok()?;
    whole.checked_mul(ONE)?.checked_add(fraction.parse().ok()?)?.checked_mul(sign)
}

/// Formats a number without trailing zeros.
pub(crate) fn digits(billionths: i128) -> String {
    let (whole, fraction) = ((billionths / ONE).unsigned_abs(), (billionths % ONE).unsigned_abs());
    let sign = if billionths < 0 { "-" } else { "" };
    if fraction == 0 {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{}", format!("{fraction:09}").trim_end_matches('0'))
}

/// An axis from zero to `end` with marks every `step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub(crate) end: i128,
    pub(crate) step: i128,
}

impl Axis {
    /// Creates an axis up to at least the given number. The step is 1, 2 or 5 times a power of ten.
    pub(crate) fn holding(largest: i128) -> Self {
        let largest = largest.clamp(1, LARGEST);
        let mut power = 1;
        let step = loop {
            if let Some(step) = [power, power * 2, power * 5].into_iter().find(|step| step * STEPS >= largest) {
                break step;
            }
            power *= 10;
        };
        Self { end: (largest + step - 1) / step * step, step }
    }

    /// Returns the marks in ascending order, beginning with zero.
    pub(crate) fn marks(self) -> impl Iterator<Item = i128> {
        (0..=self.end / self.step).map(move |count| count * self.step)
    }

    /// Scales a number to a length, rounded. A positive number yields at least one.
    pub(crate) fn along(self, number: i128, length: i128) -> i128 {
        let number = number.clamp(0, self.end);
        let along = (number * length + self.end / 2) / self.end;
        if number > 0 { along.max(1) } else { 0 }
    }

    /// Formats a mark with digit groups. Long axes use the units k, M, G and T.
    pub(crate) fn written(self, mark: i128) -> String {
        let units = [
            (1_000_000_000_000, 1_000_000_000_000, "T"),
            (1_000_000_000, 1_000_000_000, "G"),
            (1_000_000, 1_000_000, "M"),
            (10_000, 1000, "k"),
        ];
        match units.into_iter().find(|(from, ..)| self.end >= from * ONE) {
            Some((_, unit, name)) if mark > 0 => format!("{} {name}", grouped(&digits(mark / unit))),
            _ => grouped(&digits(mark)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_and_written_exactly() {
        for text in ["0", "1", "-1", "0.000000001", "1234567890123456789.123456789", "-0.5", "60"] {
            assert_eq!(digits(billionths(text).expect(text)), text);
        }
        assert_eq!(digits(billionths("60.00").expect("a number")), "60");
        for text in ["", "-", "1e3", "1,000", ".5", "1.2.3", "999999999999999999999999999999999999999"] {
            assert_eq!(billionths(text), None, "{text}");
        }
    }

    #[test]
    fn an_axis_holds_its_number_with_few_round_marks() {
        for (largest, end, step) in [
            ("0.000000003", "0.000000003", "0.000000001"),
            ("1", "1", "0.5"),
            ("60", "60", "20"),
            ("61", "80", "20"),
            ("1500", "1500", "500"),
            ("9999999999999999999", "10000000000000000000", "5000000000000000000"),
        ] {
            let axis = Axis::holding(billionths(largest).expect(largest));
            assert_eq!((digits(axis.end).as_str(), digits(axis.step).as_str()), (end, step), "{largest}");
            assert!((2..=6).contains(&axis.marks().count()), "{largest}");
        }
        assert_eq!(Axis::holding(0).marks().count(), 2);
    }

    #[test]
    fn a_number_is_as_far_along_as_it_is_large() {
        let axis = Axis::holding(billionths("80").expect("a number"));
        for (number, along) in [("0", 0), ("-3", 0), ("0.001", 1), ("20", 50), ("40", 100), ("80", 200), ("90", 200)] {
            assert_eq!(axis.along(billionths(number).expect(number), 200), along, "{number}");
        }
    }

    #[test]
    fn long_marks_are_written_short() {
        for (largest, marks) in [
            ("8000", vec!["0", "2,000", "4,000", "6,000", "8,000"]),
            ("13500", vec!["0", "5 k", "10 k", "15 k"]),
            ("1500000", vec!["0", "0.5 M", "1 M", "1.5 M"]),
            ("4000000000000", vec!["0", "1 T", "2 T", "3 T", "4 T"]),
        ] {
            let axis = Axis::holding(billionths(largest).expect(largest));
            assert_eq!(axis.marks().map(|mark| axis.written(mark)).collect::<Vec<_>>(), marks);
        }
    }
}
