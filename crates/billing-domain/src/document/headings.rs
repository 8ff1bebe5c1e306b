//! Headings of products on printed documents.

use super::totals::{BilledProduct, DocumentContent};

impl DocumentContent {
    /// Returns the heading of a product: its name, with the number of the product if another product of the document has the same name.
    pub fn heading(&self, product: &BilledProduct) -> String {
        let is_twin = |other: &BilledProduct| other.name == product.name && other.product_no != product.product_no;
        let name = product.name.as_str();
        if self.products.iter().any(is_twin) { format!("{name} ({})", product.product_no.0) } else { name.to_owned() }
    }
}
