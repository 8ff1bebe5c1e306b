//! The lines that were not imported, each with its reason.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::failure::{CommandError, CommandResult};

/// An NDJSON file, created with the first rejected line. A file of an earlier import is deleted, because this import
/// processes its lines again.
pub(super) struct Rejects {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// The number of the line that was added last. Lines count from 1.
    last: u64,
}

impl Rejects {
    /// Deletes the file of an earlier import.
    pub(super) fn at(path: PathBuf) -> CommandResult<Self> {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, &error)),
            Ok(()) | Err(_) => Ok(Self { path, file: None, last: 0 }),
        }
    }

    /// Adds a line, or an element of its list. The text stands with the first element that was rejected, so the file does not
    /// repeat it.
    pub(super) fn add(&mut self, (number, item): (u64, Option<usize>), reason: &str, text: &str) -> CommandResult<()> {
        let mut line = json!({"line": number, "reason": reason});
        if let Some(item) = item {
            line["item"] = item.into();
        }
        if std::mem::replace(&mut self.last, number) != number {
            line["input"] = text.into();
        }
        let written = self.open().and_then(|file| writeln!(file, "{line}"));
        written.map_err(|error| failed(&self.path, &error))
    }

    /// Flushes the file to disk.
    pub(super) fn finish(mut self) -> CommandResult<()> {
        if let Some(file) = &mut self.file {
            file.flush().and_then(|()| file.get_ref().sync_all()).map_err(|error| failed(&self.path, &error))?;
        }
        Ok(())
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
