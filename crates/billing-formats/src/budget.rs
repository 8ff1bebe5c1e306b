//! How many steps the expressions of one event may take together. Counted, not timed, so that a busy machine
//! gives the same answer as an idle one.

use std::cell::Cell;

/// The most steps for an event of usual size.
const MAX_STEPS: usize = 20_000;
/// What a value costs to copy or to compare, in bytes of text that cost the same.
const BYTES_PER_VALUE: usize = 32;
/// One step can touch the whole event at most, so a large event gets fewer: about 50 ms of the worst steps.
const MAX_TOUCHED_BYTES: usize = 32 * 1024 * 1024;

thread_local! {
    // An engine is shared by all threads and evaluates on the caller's.
    static STEPS_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Gives an event its steps.
pub(crate) fn start(event_bytes: usize, event_values: usize) {
    let touched = event_bytes + event_values * BYTES_PER_VALUE;
    STEPS_LEFT.set(MAX_STEPS.min(MAX_TOUCHED_BYTES / touched.max(1)));
}

/// Takes a step; `false` when there is none left.
pub(crate) fn step() -> bool {
    let left = STEPS_LEFT.get();
    STEPS_LEFT.set(left.saturating_sub(1));
    left > 0
}
