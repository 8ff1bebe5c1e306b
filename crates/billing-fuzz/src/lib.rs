//! Fuzz targets for untrusted input, for libFuzzer. Each target takes arbitrary bytes and panics on a wrong result: a server
//! error, a parsed value that differs from the input, or unauthorized access.
//!
//! `corpus/` contains the inputs that reached new code, in one file per target. Every test run replays them. `scripts/fuzz`
//! starts from them and is guided by code coverage.
#![forbid(unsafe_code)]

mod interface;
mod readers;
/// The server fixture of the API tests.
#[path = "../../billing-http/tests/interface/common.rs"]
mod server;

use std::sync::LazyLock;

/// The environment variable with the name of the target.
const CHOICE: &str = "FUZZ_TARGET";

/// A fuzz target: a function that takes arbitrary bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// The name of the target and of its file in `corpus/`.
    pub name: &'static str,
    run: fn(&[u8]),
}

impl Target {
    /// Runs the target with these bytes.
    ///
    /// # Panics
    /// Panics if the result is wrong.
    pub fn run(&self, bytes: &[u8]) {
        (self.run)(bytes);
    }
}

/// All targets.
pub const TARGETS: [Target; 10] = [
    Target { name: "json", run: readers::json },
    Target { name: "decimal", run: readers::decimal },
    Target { name: "timestamp", run: readers::timestamp },
    Target { name: "token", run: readers::token },
    Target { name: "format", run: readers::format },
    Target { name: "file", run: readers::file },
    Target { name: "event", run: interface::event },
    Target { name: "body", run: interface::body },
    Target { name: "query", run: interface::query },
    Target { name: "cookie", run: interface::cookie },
];

/// Returns the target that the environment variable `FUZZ_TARGET` names.
///
/// # Panics
/// Panics if the variable does not name a target.
pub fn chosen() -> Target {
    static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
        let name = std::env::var(CHOICE).unwrap_or_default();
        let found = TARGETS.into_iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("{CHOICE}={name} is not one of {:?}", TARGETS.map(|target| target.name)))
    });
    *CHOSEN
}
