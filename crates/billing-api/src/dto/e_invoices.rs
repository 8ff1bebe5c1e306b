//! Missing terms of e-invoices.

use billing_domain::einvoice::Missing;

use super::declare::answer;

answer! {
    /// A term that an e-invoice requires and that is missing.
    MissingTermJson of missing: Missing {
        /// JSON pointer of the field in a document, such as `/customer/vat_id`.
        #[schema(example = "/customer/vat_id")]
        pointer: String = missing.pointer.clone(),
        /// The business term and the rule that requires it.
        #[schema(example = "BT-48, BR-AE-02")]
        detail: String = missing.detail.clone(),
    }
}
