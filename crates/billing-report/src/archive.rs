//! ZIP archives of files.

use std::io::{self, Write};

use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, ZipWriter};

/// A ZIP archive that is written file by file.
///
/// Files are not compressed, because the archived PDF files are. The archive has no times, so equal files give equal archives.
#[derive(Debug)]
pub struct ArchiveWriter<W: Write>(ZipWriter<StreamWriter<W>>);

impl<W: Write> ArchiveWriter<W> {
    /// Creates an archive.
    pub fn new(writer: W) -> Self {
        Self(ZipWriter::new_stream(writer))
    }

    /// Adds a file.
    ///
    /// # Errors
    /// Returns the error of the writer, or an error if the archive has a file of this name. The archive is then incomplete.
    pub fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        self.0.start_file(name, options)?;
        self.0.write_all(content)
    }

    /// Writes the directory of the archive. An archive without its directory cannot be opened.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};

    use super::*;

    #[test]
    fn an_archive_has_its_files() {
        let mut bytes = Vec::new();
        let mut archive = ArchiveWriter::new(&mut bytes);
        archive.add("UB-INV-1.pdf", b"one").expect("a file");
        archive.add("UB-INV-2.pdf", b"").expect("a file");
        archive.finish().expect("a directory");
        let mut read = zip::ZipArchive::new(Cursor::new(bytes)).expect("an archive");
        assert_eq!(read.len(), 2);
        let mut content = String::new();
        read.by_name("UB-INV-1.pdf").expect("the file").read_to_string(&mut content).expect("its content");
        assert_eq!(content, "one");
    }
}
