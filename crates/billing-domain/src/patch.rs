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

    /// Whether the request names it.
    pub const fn is_named(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// Whether the request gives a value.
    pub const fn is_set(&self) -> bool {
        matches!(self, Self::Set(_))
    }
}

impl<T: PartialEq> Patch<T> {
    /// Kept where it says what is agreed already.
    pub fn unless(self, agreed: Option<&T>) -> Self {
        let same = match &self {
            Self::Keep => true,
            Self::Clear => agreed.is_none(),
            Self::Set(value) => agreed == Some(value),
        };
        if same { Self::Keep } else { self }
    }
}

impl<T: Clone> Patch<T> {
    /// Puts it in the place of a value; cleared, it is the fallback where there is one.
    pub fn put(&self, value: &mut T, fallback: Option<&T>) {
        match (self, fallback) {
            (Self::Set(set), _) => *value = set.clone(),
            (Self::Clear, Some(fallback)) => *value = fallback.clone(),
            (Self::Clear, None) | (Self::Keep, _) => {}
        }
    }

    /// Puts it in the place of an optional value; cleared, it is the fallback.
    pub fn put_optional(&self, value: &mut Option<T>, fallback: Option<T>) {
        match self {
            Self::Set(set) => *value = Some(set.clone()),
            Self::Clear => *value = fallback,
            Self::Keep => {}
        }
    }
}
