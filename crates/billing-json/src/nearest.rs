//! Suggests the known name that an unknown name probably means.

/// Longer names are not compared.
const MAX_COMPARED_BYTES: usize = 64;

/// Returns the known name nearest to a name, with at most a third of its characters wrong.
pub fn nearest<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    if name.len() > MAX_COMPARED_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase();
    let near = known.iter().map(|known| (strsim::osa_distance(&name, known), *known));
    let near = near.filter(|(distance, known)| *distance <= (known.len() / 3).max(1));
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] =
        ["billing_start_date", "billing_end_date", "unit", "quantities", "included_quantity", "prepaid_quantity"];

    #[test]
    fn a_misspelt_name_is_near_to_what_was_meant() {
        let rows = [
            ("billing_enddate", Some("billing_end_date")),
            ("billing_strat_date", Some("billing_start_date")),
            ("billingEndDate", Some("billing_end_date")),
            ("units", Some("unit")),
            ("quantity", Some("quantities")),
            ("prepayed_quantity", Some("prepaid_quantity")),
            ("colour", None),
            ("", None),
        ];
        for (name, expected) in rows {
            assert_eq!(nearest(name, &KNOWN), expected, "{name}");
        }
    }

    #[test]
    fn a_name_without_end_is_not_compared() {
        assert_eq!(nearest(&"billing_end_date".repeat(100_000), &KNOWN), None);
    }
}
