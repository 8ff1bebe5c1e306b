//! The words by which a search finds objects. A search finds an object that has, for each word of the search text, a word that
//! starts with it. So `robot` finds "Harbor Robotics", and `harbor rob` does, too. Words have no accents, so that people without the
//! letter on their keyboard find it: `sonner` finds "Sønner".

use std::collections::BTreeSet;

/// The maximum length of a word in characters. The rest of a longer word is not searched.
pub const MAX_WORD_CHARS: usize = 40;
/// The maximum number of words of one object. Further words are not searched.
pub const MAX_WORDS: usize = 32;
/// The maximum number of words of a search text. Shorter words beyond it are ignored.
pub const MAX_SOUGHT_WORDS: usize = 4;

/// Latin letters without accents, and the letters that are written for them.
const ACCENTED: [(&str, &str); 24] = [
    ("a", "àáâãäåāăąǎạảấầẩẫậắằẳẵặ"),
    ("ae", "æǽ"),
    ("c", "çćĉċč"),
    ("d", "ďđð"),
    ("e", "èéêëēĕėęěẹẻẽếềểễệə"),
    ("g", "ĝğġģǧ"),
    ("h", "ĥħ"),
    ("i", "ìíîïĩīĭįıǐỉị"),
    ("ij", "ĳ"),
    ("j", "ĵ"),
    ("k", "ķĸ"),
    ("l", "ĺļľŀł"),
    ("n", "ñńņňŋ"),
    ("o", "òóôõöøōŏőǒǿọỏốồổỗộơớờởỡợ"),
    ("oe", "œ"),
    ("r", "ŕŗř"),
    ("s", "śŝşšșſ"),
    ("ss", "ß"),
    ("t", "ţťŧț"),
    ("th", "þ"),
    ("u", "ùúûüũūŭůűųǔụủưứừửữự"),
    ("w", "ŵẁẃẅ"),
    ("y", "ýÿŷỳỵỷỹ"),
    ("z", "źżž"),
];

/// Returns the distinct words of an object's texts, such as its name and e-mail address.
pub fn words<'t>(texts: impl IntoIterator<Item = &'t str>) -> BTreeSet<String> {
    texts.into_iter().flat_map(split).take(MAX_WORDS).collect()
}

/// Returns the words of a search text, longest first, because long words have few matches.
pub fn sought_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = split(text).collect();
    words.sort_by_key(|word| std::cmp::Reverse(word.len()));
    words.dedup();
    words.truncate(MAX_SOUGHT_WORDS);
    words
}

/// Returns a text as one word, for numbers that people write with spaces, such as `DE 123 456 789`. Returns `None` for a text
/// without letters and digits.
pub fn joined_word(text: &str) -> Option<String> {
    let joined: String = split(text).collect();
    (!joined.is_empty()).then(|| shortened(&joined))
}

/// Returns a text in lower case, with Latin letters without accents.
pub fn without_accents(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars().flat_map(char::to_lowercase).filter(|c| !is_mark(*c)) {
        let of_group = |(_, letters): &&(&str, &str)| !c.is_ascii() && letters.contains(c);
        match ACCENTED.iter().find(of_group) {
            Some((letters, _)) => plain.push_str(letters),
            None => plain.push(c),
        }
    }
    plain
}

fn split(text: &str) -> impl Iterator<Item = String> + '_ {
    let is_part = |c: char| c.is_alphanumeric() || is_mark(c);
    let words = text.split(move |c: char| !is_part(c)).map(|word| shortened(&without_accents(word)));
    words.filter(|word| !word.is_empty())
}

/// Returns whether a character is a mark that combines with the letter before it.
const fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn shortened(word: &str) -> String {
    word.chars().take(MAX_WORD_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lower_case_letters_and_digits() {
        let found = words(["Harbor-Robotics GmbH & Co. KG", "Billing@Harbor.example"]);
        let found: Vec<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(found, ["billing", "co", "example", "gmbh", "harbor", "kg", "robotics"]);
        assert_eq!(words(["КИЇВ 東京"]).into_iter().collect::<Vec<_>>(), ["київ", "東京"]);
        assert_eq!(words(["–", ""]), BTreeSet::new());
    }

    #[test]
    fn words_have_no_accents_however_these_are_written() {
        for (text, expected) in [
            ("Sønner", "sonner"),
            ("SØNNER", "sonner"),
            ("Müller", "muller"),
            ("Mu\u{308}ller", "muller"),
            ("KÖLN", "koln"),
            ("Straße", "strasse"),
            ("Łódź", "lodz"),
            ("Œuvre", "oeuvre"),
            ("İstanbul", "istanbul"),
            ("Nguyễn", "nguyen"),
            ("Þór", "thor"),
        ] {
            assert_eq!(sought_words(text), [expected], "{text}");
            assert_eq!(words([text]), BTreeSet::from([expected.to_owned()]), "{text}");
        }
        assert_eq!(sought_words("\u{308} "), Vec::<String>::new());
    }

    #[test]
    fn long_texts_have_a_bounded_number_of_bounded_words() {
        assert_eq!(words(["x".repeat(99).as_str()]), BTreeSet::from(["x".repeat(MAX_WORD_CHARS)]));
        let many: Vec<String> = (0..99).map(|number| number.to_string()).collect();
        assert_eq!(words([many.join(" ").as_str()]).len(), MAX_WORDS);
    }

    #[test]
    fn the_longest_words_are_sought_first() {
        assert_eq!(sought_words("the Harbor of the robots"), ["harbor", "robots", "the", "of"]);
        assert_eq!(sought_words("a bb ccc dddd eeeee").len(), MAX_SOUGHT_WORDS);
        assert_eq!(sought_words(" - "), Vec::<String>::new());
    }

    #[test]
    fn a_number_with_spaces_is_one_word() {
        assert_eq!(joined_word("DE 123.456/789").as_deref(), Some("de123456789"));
        assert_eq!(joined_word("  "), None);
    }
}
