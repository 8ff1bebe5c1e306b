//! Three ways a request treats a value: leave it, clear it, set it.

/// What happens to an optional value in an edit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The request leaves it out: it stays.
    #[default]
    Keep,
    /// The request has `null`: it goes.
    Clear,
    /// The request has a value.
    Set(T),
}

impl<T> Patch<T> {
    /// The value after the edit.
    pub fn apply(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }
}
