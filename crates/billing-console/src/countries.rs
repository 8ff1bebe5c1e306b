//! The countries of addresses, with their names in English.

use std::sync::LazyLock;

use crate::input::InputKind;

/// A code and a name in each line, ordered by name.
const LIST: &str = include_str!("countries.txt");

/// Returns the choice among all countries by name. A present value that is no country is a choice, too, so that a form keeps it.
pub fn country_choice(present: &str) -> InputKind {
    static CHOICES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let all = LIST.lines().filter_map(|line| line.split_once(' '));
        all.map(|(code, name)| (code.to_owned(), format!("{name} ({code})"))).collect()
    });
    let is_unknown = !present.is_empty() && CHOICES.iter().all(|(code, _)| code != present);
    let unknown = is_unknown.then(|| (present.to_owned(), present.to_owned()));
    InputKind::Named(CHOICES.iter().cloned().chain(unknown).collect())
}

#[cfg(test)]
mod tests {
    use billing_domain::codes::CountryCode;

    use super::*;

    #[test]
    fn every_country_has_a_name() {
        let mut codes: Vec<&str> = LIST.lines().filter_map(|line| line.split_once(' ')).map(|(code, _)| code).collect();
        codes.sort_unstable();
        assert_eq!(codes, CountryCode::all());
    }

    #[test]
    fn a_form_keeps_a_country_that_it_does_not_know() {
        let InputKind::Named(countries) = country_choice("Germany") else { panic!("no choice") };
        assert!(countries.contains(&("DE".to_owned(), "Germany (DE)".to_owned())));
        assert_eq!(countries.last(), Some(&("Germany".to_owned(), "Germany".to_owned())));
        assert!(matches!(country_choice("DE"), InputKind::Named(countries) if countries.len() == CountryCode::all().len()));
    }
}
