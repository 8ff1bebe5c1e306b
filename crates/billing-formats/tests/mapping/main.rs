//! Tests formats through the public interface that the use cases call.

mod common;
mod hostile;
mod language;
mod real_inputs;
mod records;
