//! What a change has cost: ratios of one run, never times.

use std::process::Command;

/// A machine that is disturbed once isn't slower.
const ATTEMPTS: usize = 2;

#[test]
#[expect(clippy::print_stdout, reason = "the figures of the run")]
fn no_ratio_is_less_than_half_of_what_is_to_be_reached() {
    let mut said = String::new();
    for _ in 0..ATTEMPTS {
        let finished = Command::new(env!("CARGO_BIN_EXE_billing-bench")).arg("smoke").output().expect("it runs");
        if finished.status.success() {
            println!("{}", String::from_utf8_lossy(&finished.stdout));
            return;
        }
        said = String::from_utf8_lossy(&finished.stderr).into_owned();
    }
    panic!("{said}");
}
