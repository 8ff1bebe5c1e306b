//! Edits of optional values: keep, clear or set.

use std::fmt;

/// An edit of an optional value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Keeps the value. The field is missing in the request.
    #[default]
    Keep,
    /// Clears the value. The field is `null` in the request.
    Clear,
    /// Sets the value to the one in the request.
    Set(T),
}

impl<T> Patch<T> {
    /// Returns the value after the edit.
    pub fn apply(self, present: Option<T>) -> Option<T> {
        match self {
            Self::Keep => present,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// Returns whether the request contains the field.
    pub const fn is_named(&self) -> bool {
        !matches!(self, Self::Keep)
    }

    /// Returns whether the request sets a value.
    pub const fn is_set(&self) -> bool {
        matches!(self, Self::Set(_))
    }
}

impl<T: PartialEq> Patch<T> {
    /// Returns [`Keep`](Self::Keep) if the edit wouldn't change the agreed value, and the edit otherwise.
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
    /// Applies the edit to a value. A cleared value becomes the fallback, or stays unchanged without a fallback.
    pub fn put(&self, value: &mut T, fallback: Option<&T>) {
        match (self, fallback) {
            (Self::Set(set), _) => *value = set.clone(),
            (Self::Clear, Some(fallback)) => *value = fallback.clone(),
            (Self::Clear, None) | (Self::Keep, _) => {}
        }
    }

    /// Applies the edit to an optional value. A cleared value becomes the fallback.
    pub fn put_optional(&self, value: &mut Option<T>, fallback: Option<T>) {
        match self {
            Self::Set(set) => *value = Some(set.clone()),
            Self::Clear => *value = fallback,
            Self::Keep => {}
        }
    }
}

/// An edit of the fields of a `T`. Fields that it doesn't name stay unchanged.
pub struct Changes<T>(Vec<Change<T>>);

type Change<T> = Box<dyn Fn(&mut T) + Send + Sync>;

impl<T: 'static> Changes<T> {
    /// Creates an edit that changes nothing.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// Creates an edit with a single change.
    pub fn of(change: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        Self(vec![Box::new(change)])
    }

    /// Creates an edit that replaces the whole value.
    pub fn to(value: T) -> Self
    where
        T: Clone + Send + Sync,
    {
        Self::of(move |present: &mut T| present.clone_from(&value))
    }

    /// Adds a change.
    pub fn add(&mut self, change: impl Fn(&mut T) + Send + Sync + 'static) {
        self.0.push(Box::new(change));
    }

    /// Adds the changes of a part of the value.
    pub fn add_below<U: 'static>(&mut self, changes: Changes<U>, part: fn(&mut T) -> &mut U) {
        self.add(move |whole| changes.apply(part(whole)));
    }

    /// Applies the changes in their order.
    pub fn apply(&self, value: &mut T) {
        for change in &self.0 {
            change(value);
        }
    }
}

impl<T> fmt::Debug for Changes<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Changes({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_leave_what_they_do_not_name() {
        let mut below = Changes::none();
        below.add(|value: &mut Option<u8>| *value = None);
        let mut changes = Changes::none();
        changes.add(|pair: &mut (u8, Option<u8>)| pair.0 = 7);
        changes.add_below(below, |pair| &mut pair.1);
        let mut pair = (1, Some(2));
        changes.apply(&mut pair);
        assert_eq!(pair, (7, None));
        Changes::none().apply(&mut pair);
        assert_eq!(pair, (7, None));
    }
}
