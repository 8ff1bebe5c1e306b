//! The functions that expressions can call.

mod dates;
mod numbers;
mod tables;
mod texts;

use rhai::Engine;

pub(crate) fn register(engine: &mut Engine) {
    dates::register(engine);
    numbers::register(engine);
    tables::register(engine);
    texts::register(engine);
}
