//! Typesets sheets as PDF files with typst.
//!
//! The program `usage-billing-print` does nothing else: a server starts it and sends it sheets, because typesetting needs limits of
//! time and memory ([`process`]), and because typst takes longer to build than the server. [`Printer`] is the same in one process,
//! for tests. A changed template gets a new name, because the name is stored with each file.

mod factur_x;
mod fonts;
mod printer;
pub mod process;
mod stamp;
mod typeset;

pub use printer::Printer;
