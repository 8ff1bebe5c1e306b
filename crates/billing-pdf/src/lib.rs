//! Renders documents and statements as PDF files, as a pure function of a document's frozen content or a statement's entries.
//! [`Printer`] implements the port with typst. A server uses [`PrintProcesses`], which sends the inputs of each file to another
//! process: [`typesetting_process`] is what runs there.
//!
//! The modules `template_data` and `statement_data` determine the texts. The templates determine only the layout and receive
//! data, never source text. A changed template gets a new name, because the name is stored with each file.

mod calculation;
mod epc;
mod factur_x;
mod figures;
mod fonts;
mod frame;
mod processes;
mod sheet;
mod stamp;
mod statement_data;
mod template_data;
mod texts;
mod translations;
mod typeset;
pub mod typesetting_process;

use std::path::PathBuf;
use std::sync::OnceLock;

use billing_domain::document::files::RenderedFile;
use billing_domain::document::printout::Printout;
use billing_domain::party::appearance::Logo;
use billing_domain::ports::{DocumentPrinter, PrintError};
use billing_domain::receivables::StatementPrintout;

use fonts::{FontCollection, Fonts, SYSTEM_FOLDERS};
pub use processes::{DEFAULT_DEADLINE, DEFAULT_MEMORY_MIB, PrintProcessSettings, PrintProcesses, this_program};
use sheet::Sheet;

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
        let fonts = match &sheet.draft {
            Some(word) => self.fonts_for(&format!("{word}{}", sheet.data))?,
            None => self.fonts_for(&sheet.data)?,
        };
        typeset::typeset(fonts, sheet)
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
        let missing = |sheet: Sheet| Some(fonts::named(self.fonts_for(&sheet.data).ok()?.missing(&sheet.data)));
        Sheet::of_document(printout).ok().and_then(missing).unwrap_or_default()
    }

    fn print_statement(&self, statement: &StatementPrintout) -> Result<RenderedFile, PrintError> {
        self.render(&Sheet::of_statement(statement)?)
    }

    fn can_print_logo(&self, logo: &Logo) -> Result<bool, PrintError> {
        Ok(self.typeset(&Sheet::of_logo(Some(logo))).is_ok())
    }
}
