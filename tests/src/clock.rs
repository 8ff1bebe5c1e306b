//! A wall clock that tests set while a server runs. The preloaded library `clock.c` implements the clock.
//!
//! The clock affects only servers that are started with it. It affects neither durations nor the clock of the database.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::NamedTempFile;

use crate::when;

/// A clock that shows the real time until it is set.
#[derive(Debug)]
pub struct Clock {
    /// The file with the seconds to add, which the servers read.
    turned: NamedTempFile,
}

impl Clock {
    /// Creates a clock that shows the given instant now.
    ///
    /// # Panics
    /// Panics if the file of the clock cannot be created or written.
    pub fn at(instant: &str) -> Self {
        let clock = Self { turned: NamedTempFile::new().expect("a file") };
        clock.set(instant);
        clock
    }

    /// Sets the clock, which continues to run from the given instant.
    ///
    /// # Panics
    /// Panics if the file of the clock cannot be written.
    pub fn set(&self, instant: &str) {
        let mut file = self.turned.as_file();
        file.seek(SeekFrom::Start(0)).expect("the start of the file");
        // The file must never become shorter, because the servers have mapped it.
        file.write_all(&when::seconds_until(instant).to_ne_bytes()).expect("the seconds are written");
    }

    /// Returns the environment variables of a process that uses this clock.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", text(library())), ("TEST_CLOCK", text(self.turned.path()))]
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a UTF-8 path").to_owned()
}

/// Returns the path of the library. Each test program builds the library once, in the directory of the program.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let library = test.with_extension("clock.so");
        // Two processes can build the library at once, so the library gets its final name only when it is complete.
        let unfinished = test.with_extension(format!("clock.{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&unfinished).arg(source).arg("-ldl");
        let status = compiler.status().unwrap_or_else(|error| panic!("cc does not start: {error}"));
        assert!(status.success(), "{compiler:?}");
        std::fs::rename(unfinished, &library).expect("the library is renamed");
        library
    })
}
