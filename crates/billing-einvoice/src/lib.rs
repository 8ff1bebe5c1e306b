//! Writes e-invoices as XML: UBL 2.1 and Cross Industry Invoice. [`Writer`] implements the port.
//!
//! The domain decides what an e-invoice contains. The two modules only write its terms as elements, in the order of the schemas.
//! The same terms give the same bytes.

mod cii;
mod ubl;
mod xml;

use billing_domain::document::files::RenderedFile;
use billing_domain::einvoice::Syntax;
use billing_domain::einvoice::business_terms::{BusinessTerms, Note};
use billing_domain::ports::{EInvoiceWriter, PrintError};
use sha2::{Digest as _, Sha256};

/// The version of the elements. Different elements for the same terms get a new version, because it is stored with each file.
const VERSION: u8 = 1;

/// The note (BT-22) of each e-invoice in a sandbox.
const SANDBOX_NOTE: &str = "TEST";

/// A writer of e-invoices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Writer {
    /// Whether each e-invoice has a note that it is a test, as in a sandbox.
    pub is_sandbox: bool,
}

impl EInvoiceWriter for Writer {
    fn write(&self, terms: &BusinessTerms, syntax: Syntax) -> Result<RenderedFile, PrintError> {
        let marked = self.is_sandbox.then(|| {
            let mut terms = terms.clone();
            terms.notes.push(Note { subject: None, text: SANDBOX_NOTE.to_owned() });
            terms
        });
        let terms = marked.as_ref().unwrap_or(terms);
        let (written, name) = match syntax {
            Syntax::Ubl => (ubl::write(terms), "ubl"),
            Syntax::Cii => (cii::write(terms), "cii"),
        };
        let bytes = written.map_err(|error| PrintError::Failed(error.to_string()))?;
        let maker = format!("billing-einvoice {} {name}-{VERSION}", env!("CARGO_PKG_VERSION"));
        Ok(RenderedFile { sha256: Sha256::digest(&bytes).into(), bytes, maker })
    }
}
