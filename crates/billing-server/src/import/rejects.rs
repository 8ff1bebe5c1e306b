//! The lines that were not imported, each with its reason.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::{CommandError, CommandResult};

/// A file of NDJSON that is made with its first line. One that an earlier import left is in the way of nobody: it tells of
/// lines that this import comes to again.
pub(super) struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    count: u64,
}

impl Rejects {
    /// Takes an earlier file away.
    pub(super) fn at(path: PathBuf) -> CommandResult<Self> {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
            Ok(()) | Err(_) => Ok(Self { path, file: None, count: 0 }),
        }
    }

    /// Notes a line.
    pub(super) fn add(&mut self, number: u64, reason: &str, text: &str) -> CommandResult<()> {
        self.count += 1;
        let line = json!({"line": number, "reason": reason, "input": text});
        let written = self.open().and_then(|file| writeln!(file, "{line}"));
        written.map_err(|error| failed(&self.path, &error))
    }

    /// How many lines there are, once they are on disk.
    pub(super) fn finish(mut self) -> CommandResult<u64> {
        if let Some(file) = &mut self.file {
            file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|error| failed(&self.path, &error))?;
        }
        Ok(self.count)
    }

    fn open(&mut self) -> io::Result<&mut BufWriter<File>> {
        let file = match self.file.take() {
            Some(file) => file,
            None => BufWriter::new(File::create(&self.path)?),
        };
        Ok(self.file.insert(file))
    }
}

fn failed(path: &Path, error: &io::Error) -> CommandError {
    CommandError::Failed(format!("cannot write {}: {error}", path.display()))
}
