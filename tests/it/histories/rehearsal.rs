//! Dry runs: an operation changes exactly the documents that its dry run shows, and in the same way.

use std::collections::BTreeMap;

use acceptance::books;
use serde_json::Value;

/// The operations of histories that support a dry run.
pub(crate) const CAN_BE: [&str; 12] = [
    "cancel_contract",
    "delete_event",
    "edit_contract",
    "edit_customer",
    "issue_document",
    "record_event",
    "record_formatted_event",
    "record_deposit",
    "record_payment",
    "update_event",
    "update_formatted_event",
    "void_document",
];
/// The compared fields of a document.
const SAID: [&str; 6] = ["state", "kind", "total", "amount_due", "paid_amount", "credits_amount"];

type DocumentFigures = BTreeMap<String, [String; 6]>;

/// The effects that a dry run showed.
pub(crate) struct Rehearsed {
    changed: DocumentFigures,
    before: DocumentFigures,
}

fn reported<'d>(documents: impl IntoIterator<Item = &'d Value>) -> DocumentFigures {
    let one = |document: &Value| (books::fields(document, ["document_number"])[0].clone(), books::fields(document, SAID));
    documents.into_iter().map(one).collect()
}

impl Rehearsed {
    pub(crate) fn of(effects: &Value) -> Self {
        // Planned documents have no number and are not stored.
        let is_stored = |document: &&Value| !document["document_number"].is_null();
        let shown =
            |parts: &[&str]| reported(parts.iter().flat_map(|part| effects[*part].as_array().expect("a list")).filter(is_stored));
        Self { changed: shown(&["opened", "issued", "recomputed", "voided", "settled"]), before: shown(&["before"]) }
    }

    /// Compares the dry run with the actual changes.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub(crate) fn check(self, before: &[Value], after: &[Value]) -> Result<(), String> {
        let (before, after) = (reported(before), reported(after));
        let is_new = |(number, stated): &(&String, &[String; 6])| before.get(*number) != Some(*stated);
        // A document that is opened and voided in the same step was never visible.
        let was_seen = |(number, stated): &(&String, &[String; 6])| before.contains_key(*number) || stated[0] != "VOID";
        let owned = |(number, stated): (&String, &[String; 6])| (number.clone(), stated.clone());
        let changed: DocumentFigures = after.iter().filter(is_new).filter(was_seen).map(owned).collect();
        // A document may have other content with the same amounts.
        let shown: DocumentFigures = self.changed.iter().filter(is_new).map(owned).collect();
        if shown != changed {
            return Err(format!("the dry run shows {shown:?}, and {changed:?} happens"));
        }
        let wrong = self.before.iter().find(|(number, stated)| before.get(*number) != Some(*stated));
        wrong.map_or(Ok(()), |(number, stated)| Err(format!("the dry run shows that {number} was {stated:?}")))
    }
}
