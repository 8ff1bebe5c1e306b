//! Pages of lists: every list is bounded and has a total order.

use thiserror::Error;

/// The most elements of a page.
pub const MAX_PAGE_SIZE: u32 = 1000;

/// From which end a list is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// As it is ordered.
    #[default]
    Forward,
    /// The last first.
    Backward,
}

/// In which order a list is: by what, and whether the largest come first. It is total: each list says how equals come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Order<K> {
    /// By what.
    pub by: K,
    /// The largest first, of equals the largest too.
    pub descending: bool,
}

impl<K> Order<K> {
    /// From which end a list is read that is ordered by it.
    pub const fn direction(&self) -> Direction {
        if self.descending { Direction::Backward } else { Direction::Forward }
    }
}

/// Which part of a list is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    size: u32,
    number: u32,
    direction: Direction,
}

/// A page size outside 1 to [`MAX_PAGE_SIZE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("must be a whole number from 1 to 1000")]
pub struct PageSizeError;

impl PageRequest {
    /// The first page, as large as pages get.
    pub const LARGEST: Self = Self { size: MAX_PAGE_SIZE, number: 0, direction: Direction::Forward };

    /// A page of 1 to [`MAX_PAGE_SIZE`] elements; the first has number 0.
    ///
    /// # Errors
    /// [`PageSizeError`] outside that.
    pub fn new(size: u32, number: u32) -> Result<Self, PageSizeError> {
        if (1..=MAX_PAGE_SIZE).contains(&size) {
            Ok(Self { size, number, direction: Direction::Forward })
        } else {
            Err(PageSizeError)
        }
    }

    /// The same page of the list read from an end. Lists that say so can be read from either.
    #[must_use]
    pub const fn in_direction(self, direction: Direction) -> Self {
        Self { direction, ..self }
    }

    /// Whether the last come first.
    pub const fn is_backward(self) -> bool {
        matches!(self.direction, Direction::Backward)
    }

    /// The page after it.
    pub const fn next(self) -> Self {
        Self { number: self.number.saturating_add(1), ..self }
    }

    /// Elements of a page.
    pub const fn size(self) -> u32 {
        self.size
    }

    /// Which page, from 0.
    pub const fn number(self) -> u32 {
        self.number
    }

    /// Elements before the page.
    pub const fn offset(self) -> u64 {
        self.size as u64 * self.number as u64
    }
}

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The page's elements.
    pub items: Vec<T>,
    /// Elements of the whole list.
    pub total: u64,
}

impl<T> Page<T> {
    /// A page of a list that has nothing.
    pub const fn empty() -> Self {
        Self { items: Vec::new(), total: 0 }
    }

    /// The same page with every element changed.
    ///
    /// # Errors
    /// The first error of the change.
    pub fn try_map<U, E>(self, change: impl FnMut(T) -> Result<U, E>) -> Result<Page<U>, E> {
        Ok(Page { items: self.items.into_iter().map(change).collect::<Result<_, _>>()?, total: self.total })
    }
}
