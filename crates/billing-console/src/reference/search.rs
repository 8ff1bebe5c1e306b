//! The search of the API reference.

/// Maximum number of results of a search.
const MAX_RESULTS: usize = 50;
/// Maximum number of words of a search. Further words have no effect.
const MAX_WORDS: usize = 8;

/// An operation, a notification or a schema that a search can find.
pub(super) struct Entry {
    pub(super) title: String,
    pub(super) summary: String,
    pub(super) address: String,
    /// Lower-case name, whose matches come first.
    name: String,
    /// Further words in lower case.
    words: String,
}

/// The results of a search, best first.
pub(super) struct Results<'e> {
    pub(super) shown: Vec<&'e Entry>,
    /// Number of all results.
    pub(super) count: usize,
}

impl Entry {
    pub(super) fn new(title: String, summary: String, address: String, words: &str) -> Self {
        Self { name: title.to_lowercase(), words: words.to_lowercase(), title, summary, address }
    }

    /// Returns the number of words that only the further words contain, or `None` if neither they nor the name contain one.
    fn distance(&self, sought: &[String]) -> Option<usize> {
        let beside_name: Vec<&String> = sought.iter().filter(|word| !self.name.contains(word.as_str())).collect();
        beside_name.iter().all(|word| self.words.contains(word.as_str())).then_some(beside_name.len())
    }
}

/// Returns the entries that contain all words of a query.
pub(super) fn find<'e>(entries: &'e [Entry], query: &str) -> Results<'e> {
    let sought: Vec<String> = query.split_whitespace().take(MAX_WORDS).map(str::to_lowercase).collect();
    if sought.is_empty() {
        return Results { shown: Vec::new(), count: 0 };
    }
    let mut found: Vec<(usize, &Entry)> = entries.iter().filter_map(|entry| Some((entry.distance(&sought)?, entry))).collect();
    found.sort_by_key(|(distance, _)| *distance);
    let count = found.len();
    Results { shown: found.into_iter().take(MAX_RESULTS).map(|(_, entry)| entry).collect(), count }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(title: &str, words: &str) -> Entry {
        Entry::new(title.to_owned(), String::new(), String::new(), words)
    }

    fn titles(entries: &[Entry], query: &str) -> Vec<String> {
        find(entries, query).shown.into_iter().map(|entry| entry.title.clone()).collect()
    }

    #[test]
    fn all_words_are_found_in_any_case_and_names_come_first() {
        let entries = [entry("GET /api/events", "Lists payments"), entry("POST /api/Payments", "Records money for an event")];
        assert_eq!(titles(&entries, "PAYMENT"), ["POST /api/Payments", "GET /api/events"]);
        assert_eq!(titles(&entries, "event  payment"), ["GET /api/events", "POST /api/Payments"]);
        assert_eq!(titles(&entries, "payment money"), ["POST /api/Payments"]);
        assert_eq!(titles(&entries, "payment refund"), Vec::<String>::new());
        assert_eq!(titles(&entries, " "), Vec::<String>::new());
    }

    #[test]
    fn the_number_of_results_is_limited() {
        let entries: Vec<Entry> = (0..=MAX_RESULTS).map(|_| entry("same", "")).collect();
        let results = find(&entries, "same");
        assert_eq!((results.shown.len(), results.count), (MAX_RESULTS, MAX_RESULTS + 1));
    }
}
