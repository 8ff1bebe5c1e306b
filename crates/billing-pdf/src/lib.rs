//! Documents and statements as PDF files, as a pure function of a document's frozen content or a statement's entries.
//!
//! The modules `template_data` and `statement_data` determine the texts of a file, which become a [`Sheet`](sheet::Sheet).
//! [`PrintProcesses`] implements the port: it sends sheets to processes of another program, which typesets them. That program is
//! in the crate `billing-typesetter`, because a typesetter takes longer to build than all the rest. The templates are there, too.
//! They determine only the layout and receive data, never source text.

mod calculation;
mod epc;
mod figures;
pub mod fonts;
mod frame;
mod processes;
pub mod sheet;
mod statement_data;
mod template_data;
mod texts;
mod translations;

pub use processes::{
    ANOTHER_VERSION, DEFAULT_DEADLINE, DEFAULT_MEMORY_MIB, PROGRAM, PrintProcessSettings, PrintProcesses, ProcessLimits,
    TOO_SLOW, VERSION,
};
