//! What is wrong with a value somebody sent, field by field, in words a user can act on.
//! How it is shown (status codes, pointers) is the interface's business.

use std::fmt;

/// One field that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The field, as a path of names and indices: `["products", "0", "issue_day"]`.
    pub path: Vec<String>,
    /// A stable word for machines, such as `out_of_range`.
    pub code: &'static str,
    /// What is wrong and what would be right.
    pub detail: String,
}

/// Everything that is wrong with one value; never shown when empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violations {
    /// None yet.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Notes one.
    pub fn add(&mut self, path: &[&str], code: &'static str, detail: impl Into<String>) {
        let path = path.iter().map(|s| (*s).to_owned()).collect();
        self.0.push(Violation { path, code, detail: detail.into() });
    }

    /// Notes all of another value's, below a path of this one.
    pub fn extend_below(&mut self, prefix: &[&str], other: Self) {
        self.0.extend(other.0.into_iter().map(|mut violation| {
            let mut path: Vec<String> = prefix.iter().map(|s| (*s).to_owned()).collect();
            path.append(&mut violation.path);
            Violation { path, ..violation }
        }));
    }

    /// Keeps the first ones, at most so many.
    pub fn truncate(&mut self, most: usize) {
        self.0.truncate(most);
    }

    /// Whether nothing is wrong.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The violations in the order they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Violation> {
        self.0.iter()
    }

    /// The value, when nothing is wrong.
    ///
    /// # Errors
    /// Itself, when something is.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.0.is_empty() { Ok(value) } else { Err(self) }
    }

    /// A single violation.
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
