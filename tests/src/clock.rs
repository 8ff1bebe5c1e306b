//! A wall clock that is turned under a running server: `clock.c`, preloaded. Only servers that are started with it are
//! turned; what is measured in durations isn't, nor is the database's own clock.

use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use tempfile::NamedTempFile;

use crate::when;

/// A clock, real until it is set.
#[derive(Debug)]
pub struct Clock {
    /// The seconds to add, where the servers read them.
    turned: NamedTempFile,
}

impl Clock {
    /// One that shows an instant now.
    ///
    /// # Panics
    /// When it can't be kept.
    pub fn at(instant: &str) -> Self {
        let clock = Self { turned: NamedTempFile::new().expect("a file") };
        clock.set(instant);
        clock
    }

    /// Sets it. It goes on from there.
    ///
    /// # Panics
    /// When that isn't possible.
    pub fn set(&self, instant: &str) {
        let mut file = self.turned.as_file();
        file.seek(SeekFrom::Start(0)).expect("its beginning");
        // Never shorter than it was: the servers have mapped it.
        file.write_all(&when::seconds_until(instant).to_ne_bytes()).expect("the seconds are written");
    }

    /// What a process on this clock has in its environment.
    pub fn environment(&self) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", text(library())), ("TEST_CLOCK", text(self.turned.path()))]
    }
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path of characters").to_owned()
}

/// The library, made once for each test program, beside it.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let test = std::env::current_exe().expect("a test knows its own path");
        let library = test.with_extension("clock.so");
        // Two processes may make it at once: it gets its name when it is whole.
        let unfinished = test.with_extension(format!("clock.{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&unfinished).arg(source).arg("-ldl");
        let status = compiler.status().unwrap_or_else(|error| panic!("cc doesn't start: {error}"));
        assert!(status.success(), "{compiler:?}");
        std::fs::rename(unfinished, &library).expect("it gets its name");
        library
    })
}
