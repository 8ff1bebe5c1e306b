//! The step budget that the expressions of one record share. Steps are counted, not timed, so that the result does not
//! depend on the machine's load.

use std::cell::Cell;

/// The maximum number of steps for an event of usual size.
const MAX_STEPS: usize = 20_000;
/// The cost of copying or comparing a value, as an equivalent number of text bytes.
const BYTES_PER_VALUE: usize = 32;
/// The maximum number of bytes that all steps may touch. One step touches at most the whole event, so a large event
/// gets fewer steps: about 50 ms in the worst case.
const MAX_TOUCHED_BYTES: usize = 32 * 1024 * 1024;

thread_local! {
    // All threads share an engine, which evaluates on the caller's thread.
    static STEPS_LEFT: Cell<usize> = const { Cell::new(0) };
}

/// Sets the budget for an event.
pub(crate) fn start(event_bytes: usize, event_values: usize) {
    let touched = event_bytes + event_values * BYTES_PER_VALUE;
    STEPS_LEFT.set(MAX_STEPS.min(MAX_TOUCHED_BYTES / touched.max(1)));
}

/// Consumes a step; returns `false` if the budget is exhausted.
pub(crate) fn step() -> bool {
    let left = STEPS_LEFT.get();
    STEPS_LEFT.set(left.saturating_sub(1));
    left > 0
}
