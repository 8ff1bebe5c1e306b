//! The port that maps free-form events with usage formats, implemented with rhai.
//!
//! The language deliberately has no statements, no variable except `event` and `item`, no loops, no user functions, no clock,
//! no randomness and no floats. An expression can only compute a value from an event, in bounded time and memory. Numbers
//! are exact decimals; an inexact result is an error, except for a quotient, which has 28 digits.

mod budget;
mod compiled;
mod engine;
mod failure;
mod functions;
mod mapper;
mod operators;
mod program;
mod source;
mod values;

pub use mapper::{MAX_COMPILED_FORMATS, RhaiMapper};
pub use values::{MAX_EVENT_BYTES, MAX_EVENT_DEPTH, MAX_EVENT_VALUES, MAX_EVENTS_BYTES, MAX_TEXT_BYTES};
