//! Names of units beside quantities.

use std::borrow::Cow;

use rust_decimal::Decimal;

use crate::party::legal::Language;

/// Units whose plural is known. The unit of a usage product is free text in any language, so other words stay unchanged.
const PLURALS: &[(&str, &str)] = &[
    ("account", "accounts"),
    ("build", "builds"),
    ("byte", "bytes"),
    ("call", "calls"),
    ("character", "characters"),
    ("credit", "credits"),
    ("day", "days"),
    ("device", "devices"),
    ("document", "documents"),
    ("event", "events"),
    ("file", "files"),
    ("gigabyte", "gigabytes"),
    ("hour", "hours"),
    ("image", "images"),
    ("instance", "instances"),
    ("item", "items"),
    ("job", "jobs"),
    ("licence", "licences"),
    ("license", "licenses"),
    ("megabyte", "megabytes"),
    ("message", "messages"),
    ("minute", "minutes"),
    ("month", "months"),
    ("order", "orders"),
    ("page", "pages"),
    ("project", "projects"),
    ("query", "queries"),
    ("record", "records"),
    ("request", "requests"),
    ("row", "rows"),
    ("run", "runs"),
    ("seat", "seats"),
    ("second", "seconds"),
    ("session", "sessions"),
    ("terabyte", "terabytes"),
    ("token", "tokens"),
    ("transaction", "transactions"),
    ("unit", "units"),
    ("user", "users"),
    ("week", "weeks"),
    ("year", "years"),
];

/// Returns a unit as it stands beside a quantity: in English in the plural, unless the quantity is 1. The last word is the noun.
/// Other languages have plurals of their own, also of a word that English has, so units stay unchanged there.
pub fn unit_of(language: Language, quantity: Decimal, unit: &str) -> Cow<'_, str> {
    let (before, noun) = unit.rsplit_once(' ').map_or(("", unit), |(before, noun)| (before, noun));
    match PLURALS.iter().find(|(singular, _)| *singular == noun) {
        Some((_, plural)) if language == Language::En && quantity != Decimal::ONE => {
            Cow::Owned([before, *plural].join(if before.is_empty() { "" } else { " " }))
        }
        _ => Cow::Borrowed(unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_units_have_a_plural() {
        for (quantity, unit, shown) in [
            ("1369217", "call", "calls"),
            ("1", "call", "call"),
            ("1.00", "call", "call"),
            ("0", "API call", "API calls"),
            ("0.5", "query", "queries"),
            ("7", "calls", "calls"),
            ("7", "GB", "GB"),
            ("7", "Anruf", "Anruf"),
            ("7", "", ""),
        ] {
            let quantity = Decimal::from_str_exact(quantity).expect("a quantity");
            assert_eq!(unit_of(Language::En, quantity, unit), shown, "{quantity} {unit}");
            assert_eq!(unit_of(Language::It, quantity, unit), unit, "{quantity} {unit}");
        }
    }
}
