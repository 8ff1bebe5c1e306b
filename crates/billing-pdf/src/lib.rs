//! Renders documents and statements as PDF files, as a pure function of a document's frozen content or a statement's entries.
//! [`Printer`] implements the port with typst.
//!
//! The modules `template_data` and `statement_data` determine the texts. The templates determine only the layout and receive
//! data, never source text. A changed template gets a new name, because the name is stored with each file.

mod calculation;
mod epc;
mod factur_x;
mod figures;
mod fonts;
mod stamp;
mod statement_data;
mod template_data;
mod texts;
mod translations;
mod typeset;

use std::path::PathBuf;
use std::sync::OnceLock;

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::ports::{DocumentPrinter, PrintError};
use billing_domain::receivables::StatementPrintout;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use fonts::{FontCollection, Fonts, SYSTEM_FOLDERS};
use stamp::Stamp;
use statement_data::StatementData;
use template_data::TemplateData;
use typeset::{Sheet, Template};

/// A renderer of documents. It loads the fonts with the first document.
#[derive(Debug)]
pub struct Printer {
    fonts_dir: Option<PathBuf>,
    system_folders: Vec<PathBuf>,
    fonts: OnceLock<Result<FontCollection, PrintError>>,
}

impl Default for Printer {
    fn default() -> Self {
        Self::new(None)
    }
}

impl Printer {
    /// Creates a printer with the fonts in a folder and its subfolders, for characters that the built-in fonts lack.
    /// The built-in fonts contain Latin, Greek and Cyrillic. The Noto Sans fonts that the system has are used for characters that
    /// the others lack.
    pub fn new(fonts_dir: Option<PathBuf>) -> Self {
        Self { fonts_dir, system_folders: SYSTEM_FOLDERS.map(PathBuf::from).to_vec(), fonts: OnceLock::new() }
    }

    /// Creates a printer like [`new`](Self::new) that uses no font of the system.
    pub const fn without_system_fonts(fonts_dir: Option<PathBuf>) -> Self {
        Self { fonts_dir, system_folders: Vec::new(), fonts: OnceLock::new() }
    }

    /// Returns the fonts for a text.
    fn fonts_for(&self, text: &str) -> Result<&Fonts, PrintError> {
        let load = || FontCollection::load(self.fonts_dir.as_deref(), self.system_folders.clone());
        Ok(self.fonts.get_or_init(load).as_ref().map_err(Clone::clone)?.for_text(text))
    }

    /// Renders a sheet with the fonts for its data.
    fn render(&self, fonts: &Fonts, sheet: Sheet<'_>) -> Result<RenderedFile, PrintError> {
        let attached = if sheet.e_invoice.is_some() { " factur-x-1" } else { "" };
        let maker = format!("billing-pdf {} {}{attached}", env!("CARGO_PKG_VERSION"), sheet.template.name());
        let bytes = typeset::typeset(fonts, sheet)?;
        Ok(RenderedFile { sha256: Sha256::digest(&bytes).into(), bytes, maker })
    }
}

fn json(data: &impl Serialize) -> Result<String, PrintError> {
    serde_json::to_string(data).map_err(|error| PrintError::Failed(error.to_string()))
}

impl DocumentPrinter for Printer {
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError> {
        let mut data = TemplateData::of(printout)?;
        let mut written = json(&data)?;
        let fonts = match data.draft {
            Some(word) => {
                let fonts = self.fonts_for(&format!("{word}{written}"))?;
                data.stamp = Some(Stamp::of(word, fonts).ok_or_else(|| PrintError::MissingGlyph(word.to_owned()))?);
                written = json(&data)?;
                fonts
            }
            None => self.fonts_for(&written)?,
        };
        let identifier = printout.head.document_ref.to_string();
        let logo = printout.said.paper.as_ref().and_then(|paper| paper.logo.as_ref());
        let sheet = Sheet {
            template: Template::Invoice,
            data: written.into_bytes(),
            logo,
            e_invoice: printout.e_invoice.as_ref().map(|file| file.bytes.as_slice()),
            identifier: &identifier,
            day: typeset::day_of(printout),
        };
        self.render(fonts, sheet)
    }

    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError> {
        let written = json(&StatementData::of(statement)?)?;
        let fonts = self.fonts_for(&written)?;
        let identifier = format!("statement-{}", statement.customer.customer_ref);
        let sheet = Sheet {
            template: Template::Statement,
            data: written.into_bytes(),
            logo: None,
            e_invoice: None,
            identifier: &identifier,
            day: statement.day,
        };
        self.render(fonts, sheet)
    }
}
