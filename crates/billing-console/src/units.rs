//! Names of units beside quantities.

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

/// Returns a unit as it stands beside a quantity: in the plural, unless the quantity is 1. The last word is the noun.
pub fn unit_of(quantity: &str, unit: &str) -> String {
    let (whole, fraction) = quantity.split_once('.').unwrap_or((quantity, ""));
    let is_one = whole == "1" && fraction.bytes().all(|digit| digit == b'0');
    let (before, noun) = unit.rsplit_once(' ').map_or(("", unit), |(before, noun)| (before, noun));
    match PLURALS.iter().find(|(singular, _)| *singular == noun) {
        Some((_, plural)) if !is_one => [before, *plural].join(if before.is_empty() { "" } else { " " }),
        _ => unit.to_owned(),
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
            assert_eq!(unit_of(quantity, unit), shown, "{quantity} {unit}");
        }
    }
}
