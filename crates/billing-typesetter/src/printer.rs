//! A printer in this process.

use std::path::PathBuf;
use std::sync::OnceLock;

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::party::appearance::Logo;
use billing_domain::ports::{DocumentPrinter, PrintError};
use billing_domain::receivables::StatementPrintout;
use billing_pdf::fonts::{SYSTEM_FOLDERS, named};
use billing_pdf::sheet::Sheet;

use crate::fonts::{FontCollection, Fonts};
use crate::typeset::typeset;

/// A renderer of documents in this process. It loads the fonts with the first document.
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

    /// Typesets a sheet in this process.
    pub(crate) fn typeset(&self, sheet: &Sheet) -> Result<Vec<u8>, PrintError> {
        let fonts = match &sheet.watermark {
            Some(word) => self.fonts_for(&format!("{word}{}", sheet.data))?,
            None => self.fonts_for(&sheet.data)?,
        };
        typeset(fonts, sheet)
    }

    fn render(&self, sheet: &Sheet) -> Result<RenderedFile, PrintError> {
        Ok(sheet.rendered(self.typeset(sheet)?))
    }
}

impl DocumentPrinter for Printer {
    fn print(&self, printout: &Printout) -> Result<RenderedFile, PrintError> {
        self.render(&Sheet::of_document(printout)?)
    }

    fn missing_glyphs(&self, printout: &Printout) -> String {
        let missing = |sheet: Sheet| Some(named(self.fonts_for(&sheet.data).ok()?.missing(&sheet.data)));
        Sheet::of_document(printout).ok().and_then(missing).unwrap_or_default()
    }

    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError> {
        self.render(&Sheet::of_statement(statement)?)
    }

    fn can_print_logo(&self, logo: &Logo) -> Result<bool, PrintError> {
        Ok(self.typeset(&Sheet::of_logo(Some(logo))).is_ok())
    }
}
