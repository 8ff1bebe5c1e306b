//! What strangers send, as targets for libFuzzer. Each takes any bytes, and panics where what is made of them can't be right:
//! a server error, a value that isn't what was written, somebody let in.
//!
//! The bytes that reached something new are kept in `corpus/`, one file a target. Every test run tries those; `scripts/fuzz`
//! goes on from them, with the code's branches as its guide.
#![forbid(unsafe_code)]

mod interface;
mod readers;
/// That of the tests of the interface.
#[path = "../../billing-http/tests/interface/common.rs"]
mod server;

use std::sync::LazyLock;

/// The name of the target in the environment of a fuzzer.
const CHOICE: &str = "FUZZ_TARGET";

/// Something that takes any bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its file in `corpus/`.
    pub name: &'static str,
    run: fn(&[u8]),
}

impl Target {
    /// Tries these bytes.
    ///
    /// # Panics
    /// When what comes of them can't be right.
    pub fn run(&self, bytes: &[u8]) {
        (self.run)(bytes);
    }
}

/// All of them.
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

/// The target that the environment names.
///
/// # Panics
/// When it names none.
pub fn chosen() -> Target {
    static CHOSEN: LazyLock<Target> = LazyLock::new(|| {
        let name = std::env::var(CHOICE).unwrap_or_default();
        let found = TARGETS.into_iter().find(|target| target.name == name);
        found.unwrap_or_else(|| panic!("{CHOICE}={name} is none of {:?}", TARGETS.map(|target| target.name)))
    });
    *CHOSEN
}
