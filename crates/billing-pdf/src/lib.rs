//! Documents as PDF files: a pure function of what was frozen of a document. [`Printer`] is the port's implementation, on typst.
//!
//! What a document says in which words is `sheet`'s; the template only says how it looks, and is given data, never source text.
//! A template that is changed gets a new name: what printed a file is noted beside it.

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

/// Prints documents. Fonts are read when the first one is printed.
#[derive(Debug, Default)]
pub struct Printer {
    fonts_dir: Option<PathBuf>,
    fonts: OnceLock<Result<Fonts, PrintError>>,
}

impl Printer {
    /// With the fonts in a folder and those below it, for characters that the built-in ones lack: those have Latin, Greek and
    /// Cyrillic.
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
