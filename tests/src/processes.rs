//! Processes that a server starts, as Linux shows them.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// The longest wait for a process to start or end.
const LIMIT: Duration = Duration::from_secs(60);

/// A process, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process(u32);

impl Process {
    /// Returns the process with a number.
    pub const fn with_id(id: u32) -> Self {
        Self(id)
    }

    /// Returns the nice value of the process.
    ///
    /// # Panics
    /// Panics if the process has ended.
    pub fn nice(self) -> i32 {
        // The name of the program, in parentheses, may have spaces. 16 fields stand between it and the value.
        let stat = self.read("stat").expect("the process runs");
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields);
        fields.and_then(|fields| fields.split(' ').nth(16)?.parse().ok()).expect("a nice value")
    }

    /// Returns the processes that another process started and that have not ended.
    pub fn started_by(parent: u32) -> Vec<Self> {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let ids: Vec<u32> = children.flat_map(|ids| ids.split_whitespace().flat_map(str::parse).collect::<Vec<_>>()).collect();
        ids.into_iter().map(Self).filter(|process| process.is_running()).collect()
    }

    /// Returns the only process that another process started.
    ///
    /// # Panics
    /// Panics if there are several, or if there is none in time.
    pub fn only_one_of(parent: u32) -> Self {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            match Self::started_by(parent).as_slice() {
                [] => thread::sleep(Duration::from_millis(5)),
                [only] => return *only,
                several => panic!("several processes: {several:?}"),
            }
        }
        panic!("no process was started");
    }

    /// Sends a signal, such as `-KILL`.
    ///
    /// # Panics
    /// Panics if the signal cannot be sent.
    pub fn signal(self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.0.to_string()]).status().expect("kill starts");
        assert!(status.success(), "{signal}");
    }

    /// Returns whether the process has not ended.
    pub fn is_running(self) -> bool {
        let state = self.read("stat").ok();
        let has_ended =
            |stat: &str| matches!(stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()), Some('Z' | 'X') | None);
        // The first thread can have ended before the others. The kernel reports the end to the parent after the last one.
        let threads = || fs::read_dir(format!("/proc/{}/task", self.0)).map_or(0, Iterator::count);
        state.is_some_and(|stat| !has_ended(&stat) || threads() > 1)
    }

    /// Waits until the process has ended.
    ///
    /// # Panics
    /// Panics if it does not end in time.
    pub fn wait_for_end(self) {
        let began = Instant::now();
        while self.is_running() {
            assert!(began.elapsed() < LIMIT, "{self:?} does not end");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns a file of the process below `/proc`, such as `environ`.
    ///
    /// # Errors
    /// Returns an error if the process has ended.
    pub fn read(self, file: &str) -> std::io::Result<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.0))
    }

    /// Returns the files that the process has open.
    pub fn open_files(self) -> Vec<String> {
        let files = fs::read_dir(format!("/proc/{}/fd", self.0)).into_iter().flatten().flatten();
        files.filter_map(|file| Some(fs::read_link(file.path()).ok()?.to_string_lossy().into_owned())).collect()
    }
}
