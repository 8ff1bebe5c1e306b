//! The port that maps a free-form event by a usage format, on rhai.
//!
//! What isn't here is on purpose: no statement, no variable but `event`, no loop, no function of the user's, no
//! clock, no randomness, no float. An expression can only compute a value from an event, in bounded time and
//! memory. Numbers are exact decimals; what can't be exact is an error, except a quotient, which has 28 digits.

mod budget;
mod engine;
mod failure;
mod functions;
mod mapper;
mod operators;
mod program;
mod source;
mod values;

pub use mapper::{MAX_COMPILED_FORMATS, RhaiMapper};
pub use values::{MAX_EVENT_BYTES, MAX_EVENT_DEPTH, MAX_EVENT_VALUES, MAX_TEXT_BYTES};
