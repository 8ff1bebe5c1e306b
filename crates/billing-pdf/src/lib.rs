//! Renders documents as PDF files, as a pure function of a document's frozen content. [`Printer`] implements the port
//! with typst.
//!
//! The module `template_data` determines the texts of a document. The template determines only the layout and receives
//! data, never source text. A changed template gets a new name, because the name is stored with each file.

mod figures;
mod fonts;
mod template_data;
mod translations;
mod typeset;

use std::path::PathBuf;
use std::sync::OnceLock;

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::ports::{DocumentPrinter, PrintError};

use sha2::{Digest as _, Sha256};

use fonts::Fonts;
use template_data::TemplateData;

/// A renderer of documents. It loads the fonts with the first document.
#[derive(Debug, Default)]
pub struct Printer {
    fonts_dir: Option<PathBuf>,
    fonts: OnceLock<Result<Fonts, PrintError>>,
}

impl Printer {
    /// Creates a printer with the fonts in a folder and its subfolders, for characters that the built-in fonts lack.
    /// The built-in fonts contain Latin, Greek and Cyrillic.
    pub const fn new(fonts_dir: Option<PathBuf>) -> Self {
        Self { fonts_dir, fonts: OnceLock::new() }
    }
}

impl DocumentPrinter for Printer {
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError> {
        let fonts = self.fonts.get_or_init(|| Fonts::load(self.fonts_dir.as_deref())).as_ref().map_err(Clone::clone)?;
        let data = serde_json::to_vec(&TemplateData::of(printout)?).map_err(|error| PrintError::Failed(error.to_string()))?;
        let bytes = typeset::typeset(fonts, data, &printout.head.document_ref.to_string(), typeset::day_of(printout))?;
        let maker = format!("billing-pdf {} {}", env!("CARGO_PKG_VERSION"), typeset::TEMPLATE);
        Ok(RenderedFile { sha256: Sha256::digest(&bytes).into(), bytes, maker })
    }
}
