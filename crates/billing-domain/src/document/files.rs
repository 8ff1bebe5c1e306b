//! Files that are made of issued documents, once and for ever.

use crate::calendar::Timestamp;

/// In which form a file has a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileForm {
    /// To be read by people, and printed.
    Pdf,
    /// An e-invoice in UBL.
    Ubl,
    /// An e-invoice in UN/CEFACT's Cross Industry Invoice.
    Cii,
}

/// A file as it was made.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// What is in it.
    pub bytes: Vec<u8>,
    /// SHA-256 of the bytes, taken when they were made.
    pub sha256: [u8; 32],
    /// What made it, with its release.
    pub maker: String,
}

/// A file that is kept of an issued document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFile {
    /// In which form it has the document.
    pub form: FileForm,
    /// The file.
    pub made: RenderedFile,
    /// When it was made.
    pub made_at: Timestamp,
}

impl std::fmt::Debug for RenderedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MadeFile({} bytes by {})", self.bytes.len(), self.maker)
    }
}
