//! Formats from outside, as the use cases call them.

mod common;
mod hostile;
mod language;
mod real_inputs;
