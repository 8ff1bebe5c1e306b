//! Checks the performance of the build by ratios within one run, never by absolute times.

use std::process::Command;

/// Number of attempts. A single disturbance of the machine is not a slowdown.
const ATTEMPTS: usize = 2;

#[test]
#[expect(clippy::print_stdout, reason = "the figures of the run")]
fn no_ratio_is_less_than_half_of_what_is_to_be_reached() {
    let mut stated = String::new();
    for _ in 0..ATTEMPTS {
        let finished = Command::new(env!("CARGO_BIN_EXE_billing-bench")).arg("smoke").output().expect("billing-bench starts");
        if finished.status.success() {
            println!("{}", String::from_utf8_lossy(&finished.stdout));
            return;
        }
        stated = String::from_utf8_lossy(&finished.stderr).into_owned();
    }
    panic!("{stated}");
}
