//! Violations: invalid fields of a submitted value, with an explanation that users can act on.
//!
//! The API layer decides how they are presented as status codes and pointers.

use std::fmt;

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

/// All violations of a value. An error response never has an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// Creates an empty list.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Adds a violation.
    pub fn add(&mut self, path: &[&str], code: &'static str, detail: impl Into<String>) {
        let path = path.iter().map(|s| (*s).to_owned()).collect();
        self.0.push(Violation { path, code, detail: detail.into() });
    }

    /// Adds the violations of a nested value below a path prefix.
    pub fn extend_below(&mut self, prefix: &[&str], other: Self) {
        self.0.extend(other.0.into_iter().map(|mut violation| {
            let mut path: Vec<String> = prefix.iter().map(|s| (*s).to_owned()).collect();
            path.append(&mut violation.path);
            Violation { path, ..violation }
        }));
    }

    /// Keeps at most the first `most` violations.
    pub fn truncate(&mut self, most: usize) {
        self.0.truncate(most);
    }

    /// Returns whether the list is empty.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the violations in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.0.iter()
    }

    /// Returns the value if the list is empty.
    ///
    /// # Errors
    /// Returns the violations if the list isn't empty.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
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
        self.0.into_iter()
    }
}

impl FromIterator<Violation> for Violations {
    fn from_iter<I: IntoIterator<Item = Violation>>(violations: I) -> Self {
        Self(violations.into_iter().collect())
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, violation) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { "; " };
            write!(f, "{separator}{} {}", violation.path.join("."), violation.detail)?;
        }
        Ok(())
    }
}

impl std::error::Error for Violations {}
