//! Pages of lists. Every list is bounded and has a total order.

use thiserror::Error;

use crate::calendar::Timestamp;

/// The maximum number of elements of a page.
pub const MAX_PAGE_SIZE: u32 = 1000;

/// The direction in which a list is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// In list order.
    #[default]
    Forward,
    /// In reverse list order.
    Backward,
}

/// The order of a list: the sort key and the direction. The order is total, because each list defines the order of equal
/// elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order<K> {
    /// The sort key.
    pub by: K,
    /// Whether the largest elements come first. Equal elements are then in reverse order, too.
    pub descending: bool,
}

impl<K> Order<K> {
    /// Returns the direction in which an ascending list is read to get this order.
    pub const fn direction(&self) -> Direction {
        if self.descending { Direction::Backward } else { Direction::Forward }
    }
}

/// A request for a page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    size: u32,
    number: u32,
    direction: Direction,
}

/// The error for a page size outside 1 to [`MAX_PAGE_SIZE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be a whole number from 1 to 1000")]
pub struct PageSizeError;

impl PageRequest {
    /// The first page of the maximum size.
    pub const LARGEST: Self = Self { size: MAX_PAGE_SIZE, number: 0, direction: Direction::Forward };

    /// Creates a request for a page of 1 to [`MAX_PAGE_SIZE`] elements. The first page has the number 0.
    ///
    /// # Errors
    /// Returns [`PageSizeError`] if the size is outside this range.
    pub fn new(size: u32, number: u32) -> Result<Self, PageSizeError> {
        if (1..=MAX_PAGE_SIZE).contains(&size) {
            Ok(Self { size, number, direction: Direction::Forward })
        } else {
            Err(PageSizeError)
        }
    }

    /// Returns the request for the same page in another direction. Only some lists can be read in both directions.
    #[must_use]
    pub const fn in_direction(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }

    /// Returns the direction in which the list is read.
    pub const fn direction(self) -> Direction {
        self.direction
    }

    /// Returns whether the list is read in reverse order.
    pub const fn is_backward(self) -> bool {
        matches!(self.direction, Direction::Backward)
    }

    /// Returns the request for the next page.
    pub const fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }

    /// Returns the maximum number of elements of the page.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// Returns the number of the page, starting at 0.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Returns the number of elements before the page.
    pub const fn offset(self) -> u64 {
        self.size as u64 * self.number as u64
    }
}

/// A sort key that lists without other sort keys have. Equal keys are ordered by reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListSortKey {
    /// The time of creation.
    #[default]
    Created,
    /// The time of the last change.
    Updated,
}

/// A position in a list that is ordered by the time of the last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpdatePosition {
    /// The time of the last change of the element at the position.
    pub updated_at: Timestamp,
    /// The reference of the element, by which elements with equal times are ordered.
    pub key: String,
}

/// Conditions on the time of the last change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateFilter {
    /// Matches elements that last changed at this instant or later.
    pub since: Option<Timestamp>,
    /// Matches elements after this position. The list must be ordered by the time of the last change. The whole list is
    /// then not counted, and its total is 0.
    pub after: Option<UpdatePosition>,
}

impl UpdateFilter {
    /// Returns whether an element matches in an order by the time of the last change. Keys are compared as texts.
    pub fn matches(&self, updated_at: Timestamp, key: &str, direction: Direction) -> bool {
        let is_after = |position: &UpdatePosition| {
            let (element, position) = ((updated_at, key), (position.updated_at, position.key.as_str()));
            match direction {
                Direction::Forward => element > position,
                Direction::Backward => element < position,
            }
        };
        self.since.is_none_or(|since| updated_at >= since) && self.after.as_ref().is_none_or(is_after)
    }
}

/// A request for a page of a list that has no other filters and sort keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListRequest {
    /// Conditions on the time of the last change.
    pub updates: UpdateFilter,
    /// The sort key.
    pub by: ListSortKey,
    /// The page, with the direction of the order.
    pub page: PageRequest,
}

impl From<PageRequest> for ListRequest {
    /// Returns the request for a page of all elements, ordered by creation.
    fn from(page: PageRequest) -> Self {
        Self { updates: UpdateFilter::default(), by: ListSortKey::Created, page }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The elements of the page.
    pub items: Vec<T>,
    /// The number of elements of the whole list.
    pub total: u64,
}

impl<T> Page<T> {
    /// Returns the page of an empty list.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), total: 0 }
    }

    /// Converts every element of the page.
    ///
    /// # Errors
    /// Returns the first error of `change`.
    pub fn try_map<U, E>(self, change: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        Ok(Page { items: self.items.into_iter().map(change).collect::<Result<_, _>>()?, total: self.total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_after_a_position_follow_it_in_either_direction() {
        let at = |micros| Timestamp::from_micros(micros).expect("an instant");
        let after =
            |key: &str| UpdateFilter { since: None, after: Some(UpdatePosition { updated_at: at(5), key: key.to_owned() }) };
        for (micros, key, forward, backward) in
            [(4, "z", false, true), (5, "a", false, true), (5, "m", false, false), (5, "z", true, false), (6, "a", true, false)]
        {
            assert_eq!(after("m").matches(at(micros), key, Direction::Forward), forward, "{micros} {key}");
            assert_eq!(after("m").matches(at(micros), key, Direction::Backward), backward, "{micros} {key}");
        }
        let since = UpdateFilter { since: Some(at(5)), after: None };
        assert!(since.matches(at(5), "", Direction::Forward) && !since.matches(at(4), "", Direction::Forward));
    }
}
