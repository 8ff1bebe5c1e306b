//! Violations: invalid fields of a submitted value, with an explanation that users can act on.
//!
//! The API layer decides how they are presented as status codes and pointers.

use std::fmt;

/// The maximum number of violations that are listed. The others are counted, because a body within its size limit can have a
/// hundred thousand violations.
pub const MAX_LISTED_VIOLATIONS: usize = 100;

/// A field that violates a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field as names and indices: `["products", "0", "issue_day"]`.
    pub path: Vec<String>,
    /// A stable error code for programs, such as `out_of_range`.
    pub code: &'static str,
    /// The cause and the remedy.
    pub detail: String,
}

/// The violations of a value: the first [`MAX_LISTED_VIOLATIONS`] and the number of the others. An error response never has an
/// empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations {
    listed: Vec<Violation>,
    unlisted: usize,
}

impl Violations {
    /// Creates an empty list.
    pub const fn none() -> Self {
        Self { listed: Vec::new(), unlisted: 0 }
    }

    /// Adds a violation.
    pub fn add(&mut self, path: &[&str], code: &'static str, detail: impl Into<String>) {
        if self.is_full() {
            self.add_unlisted(1);
            return;
        }
        let path = path.iter().map(|s| (*s).to_owned()).collect();
        self.listed.push(Violation { path, code, detail: detail.into() });
    }

    /// Adds violations that are only counted.
    pub const fn add_unlisted(&mut self, more: usize) {
        self.unlisted = self.unlisted.saturating_add(more);
    }

    /// Adds the violations of a nested value below a path prefix.
    pub fn extend_below(&mut self, prefix: &[&str], other: Self) {
        self.add_unlisted(other.unlisted);
        self.extend(other.listed.into_iter().map(|mut violation| {
            let mut path: Vec<String> = prefix.iter().map(|s| (*s).to_owned()).collect();
            path.append(&mut violation.path);
            Violation { path, ..violation }
        }));
    }

    /// Lists only the first `most` violations and counts the others.
    pub fn truncate(&mut self, most: usize) {
        self.add_unlisted(self.listed.len().saturating_sub(most));
        self.listed.truncate(most);
        self.listed.shrink_to_fit();
    }

    /// Returns whether there are no violations.
    pub const fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.unlisted == 0
    }

    /// Returns whether further violations are only counted.
    pub const fn is_full(&self) -> bool {
        self.listed.len() >= MAX_LISTED_VIOLATIONS
    }

    /// Returns the number of violations that are counted but not listed.
    pub const fn unlisted(&self) -> usize {
        self.unlisted
    }

    /// Iterates over the listed violations in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.listed.iter()
    }

    /// Returns the value if the list is empty.
    ///
    /// # Errors
    /// Returns the violations if the list isn't empty.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }

    /// Creates a list with a single violation.
    pub fn one(path: &[&str], code: &'static str, detail: impl Into<String>) -> Self {
        let mut all = Self::none();
        all.add(path, code, detail);
        all
    }
}

impl IntoIterator for Violations {
    type Item = Violation;
    type IntoIter = std::vec::IntoIter<Violation>;

    fn into_iter(self) -> Self::IntoIter {
        self.listed.into_iter()
    }
}

impl Extend<Violation> for Violations {
    fn extend<I: IntoIterator<Item = Violation>>(&mut self, violations: I) {
        for violation in violations {
            if self.is_full() {
                self.add_unlisted(1);
            } else {
                self.listed.push(violation);
            }
        }
    }
}

impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(violations: I) -> Self {
        let mut all = Self::none();
        all.extend(violations);
        all
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, violation) in self.listed.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{} {}", violation.path.join("."), violation.detail)?;
        }
        if self.unlisted > 0 {
            write!(f, "; and {} more problems", self.unlisted)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}

#[cfg(test)]
mod tests {
    use super::*;

    fn many(number: usize) -> Violations {
        let mut all = Violations::none();
        for index in 0..number {
            all.add(&[index.to_string().as_str()], "wrong_type", "must be a string");
        }
        all
    }

    #[test]
    fn violations_beyond_the_limit_are_counted_and_not_listed() {
        for (number, listed, unlisted) in [(0, 0, 0), (1, 1, 0), (100, 100, 0), (101, 100, 1), (100_000, 100, 99_900)] {
            let all = many(number);
            assert_eq!((all.iter().count(), all.unlisted(), all.is_empty()), (listed, unlisted, number == 0), "{number}");
        }
        assert!(many(101).or(()).is_err() && many(0).or(()).is_ok());
    }

    #[test]
    fn nested_violations_count_towards_the_same_limit() {
        let mut all = many(60);
        all.extend_below(&["nested"], many(130));
        assert_eq!((all.iter().count(), all.unlisted()), (100, 90));
        assert_eq!(all.iter().nth(60).map(|violation| violation.path.join("/")), Some("nested/0".to_owned()));
        let collected: Violations = all.into_iter().chain(many(30)).collect();
        assert_eq!((collected.iter().count(), collected.unlisted()), (100, 30));
    }

    #[test]
    fn a_shorter_list_counts_what_it_omits() {
        let mut all = many(103);
        all.truncate(1);
        assert_eq!((all.iter().count(), all.unlisted()), (1, 102));
        assert_eq!(all.to_string(), "0 must be a string; and 102 more problems");
        all.truncate(5);
        assert_eq!((all.iter().count(), all.unlisted()), (1, 102));
    }
}
