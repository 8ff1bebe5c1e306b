//! Three ways a request treats a value: leave it, clear it, set it.

use std::fmt;

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

/// What an edit makes of a `T`, value by value; what it doesn't name is kept.
pub struct Changes<T>(Vec<Change<T>>);

type Change<T> = Box<dyn Fn(&mut T) + Send + Sync>;

impl<T: 'static> Changes<T> {
    /// An edit that changes nothing.
    pub const fn none() -> Self {
        Self(Vec::new())
    }

    /// An edit that changes one thing.
    pub fn of(change: impl Fn(&mut T) + Send + Sync + 'static) -> Self {
        Self(vec![Box::new(change)])
    }

    /// An edit that puts another value in its place.
    pub fn to(value: T) -> Self
    where
        T: Clone + Send + Sync,
    {
        Self::of(move |present: &mut T| present.clone_from(&value))
    }

    /// Changes something, too.
    pub fn add(&mut self, change: impl Fn(&mut T) + Send + Sync + 'static) {
        self.0.push(Box::new(change));
    }

    /// Makes changes of a part, too.
    pub fn add_below<U: 'static>(&mut self, changes: Changes<U>, part: fn(&mut T) -> &mut U) {
        self.add(move |whole| changes.apply(part(whole)));
    }

    /// Makes the changes, in their order.
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
