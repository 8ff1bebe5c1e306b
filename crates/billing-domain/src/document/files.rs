//! Files rendered from issued documents, once and permanently.

use crate::calendar::Timestamp;

/// The format of a rendered document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileForm {
    /// A PDF for reading and printing.
    Pdf,
    /// An e-invoice in UBL.
    Ubl,
    /// An e-invoice in UN/CEFACT's Cross Industry Invoice.
    Cii,
}

/// A rendered file.
#[derive(Clone, PartialEq, Eq)]
pub struct RenderedFile {
    /// The content.
    pub bytes: Vec<u8>,
    /// The SHA-256 hash of the content, computed at rendering.
    pub sha256: [u8; 32],
    /// The renderer's name and release.
    pub maker: String,
}

/// A stored file of an issued document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentFile {
    /// The format.
    pub form: FileForm,
    /// The file.
    pub made: RenderedFile,
    /// The time of rendering.
    pub made_at: Timestamp,
}

impl std::fmt::Debug for RenderedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MadeFile({} bytes by {})", self.bytes.len(), self.maker)
    }
}
