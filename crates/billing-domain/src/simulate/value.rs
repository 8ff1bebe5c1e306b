//! Values of a simulation: typed values, or text that is parsed when the simulation runs.

use std::fmt;
use std::sync::Arc;

use chrono::NaiveDate;

use crate::calendar::{TimeZone, Timestamp, parse_date};
use crate::labels::LabelKey;
use crate::money::{Currency, Percentage, Price, SignedPrice};
use crate::quantity::Quantity;
use crate::refs::{ChargeRef, EntityRef, LineItemId, PricingRef, UsageProductRef};
use crate::refusal::Refusal;
use crate::text::{OneLine, Prose};

/// The maximum number of characters of a day: `2026-03-10`.
const DAY_CHARS: usize = 10;

/// A typed value, or text that is parsed when the simulation runs. Whole numbers are parsed like text: `1500` is
/// `"1500"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given<T> {
    /// A typed value.
    Value(T),
    /// Text in the format of the HTTP interface.
    Text(String),
}

/// An instant, or a day that stands for its noon in the time zone of the simulation's first entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepTime {
    /// An instant.
    Instant(Timestamp),
    /// Noon of a day.
    Noon(NaiveDate),
}

impl StepTime {
    /// Returns the instant in a time zone.
    pub(super) fn in_zone(self, zone: TimeZone) -> Timestamp {
        match self {
            Self::Instant(instant) => instant,
            Self::Noon(day) => zone.start_of_day(day).plus_seconds(12 * 60 * 60),
        }
    }
}

/// A value that a simulation parses from text.
pub trait SimulatedValue: Clone {
    /// Parses a value.
    ///
    /// # Errors
    /// Returns the reason as text if the value is invalid.
    fn read(text: &str) -> Result<Self, String>;
}

impl<T: SimulatedValue> Given<T> {
    /// Returns the value. `field` names the value in an error.
    pub(super) fn read(&self, field: &str) -> Result<T, Refusal> {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Text(text) => T::read(text)
                .map_err(|error| Refusal::field(&[field], "invalid_format", format!("{error}: {text:?} isn't taken"))),
        }
    }
}

impl<T> From<&str> for Given<T> {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T> From<String> for Given<T> {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<T> From<&String> for Given<T> {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl<T> From<i32> for Given<T> {
    fn from(number: i32) -> Self {
        Self::Text(number.to_string())
    }
}

macro_rules! simulated_values {
    ($($value:ty: $read:expr),+ $(,)?) => {$(
        impl SimulatedValue for $value {
            fn read(text: &str) -> Result<Self, String> {
                $read(text).map_err(|error| error.to_string())
            }
        }

        impl From<$value> for Given<$value> {
            fn from(value: $value) -> Self {
                Self::Value(value)
            }
        }
    )+};
}

simulated_values!(
    Percentage: Percentage::parse,
    Price: Price::parse,
    SignedPrice: SignedPrice::parse,
    Quantity: Quantity::parse,
    Currency: Currency::from_code,
    NaiveDate: parse_date,
    Timestamp: Timestamp::parse,
    TimeZone: TimeZone::parse,
    LabelKey: LabelKey::parse,
    OneLine: OneLine::parse,
    Prose: Prose::parse,
    PricingRef: PricingRef::parse,
    UsageProductRef: UsageProductRef::parse,
    LineItemId: LineItemId::parse,
    EntityRef: EntityRef::parse,
    ChargeRef: ChargeRef::parse,
);

impl SimulatedValue for StepTime {
    fn read(text: &str) -> Result<Self, String> {
        let read =
            if text.len() <= DAY_CHARS { parse_date(text).map(Self::Noon) } else { Timestamp::parse(text).map(Self::Instant) };
        read.map_err(|error| error.to_string())
    }
}

impl From<Timestamp> for Given<StepTime> {
    fn from(instant: Timestamp) -> Self {
        Self::Value(StepTime::Instant(instant))
    }
}

impl From<NaiveDate> for Given<StepTime> {
    fn from(day: NaiveDate) -> Self {
        Self::Value(StepTime::Noon(day))
    }
}

impl From<StepTime> for Given<StepTime> {
    fn from(time: StepTime) -> Self {
        Self::Value(time)
    }
}

/// One change in a [`Recipe`].
type Ingredient<T> = Arc<dyn Fn(&mut T) -> Result<(), Refusal> + Send + Sync>;

/// Changes of a `T` in the order in which they were made. Invalid values are rejected when the changes are applied.
pub(super) struct Recipe<T>(Vec<Ingredient<T>>);

impl<T> Recipe<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(&mut self, change: impl Fn(&mut T) -> Result<(), Refusal> + Send + Sync + 'static) {
        self.0.push(Arc::new(change));
    }

    pub(super) fn apply(&self, to: &mut T) -> Result<(), Refusal> {
        self.0.iter().try_for_each(|change| change(to))
    }
}

impl<T> Clone for Recipe<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for Recipe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} changes", self.0.len())
    }
}
