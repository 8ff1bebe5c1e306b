//! Dry runs: requests and their effects.

use billing_application::dry_run::Effects;
use billing_domain::text::OneLine;

use super::declare::{answer, body};
use super::documents::DocumentJson;
use super::values::FreeForm;

body! {
    /// A request to preview.
    DryRunBody {
        /// Path of the request, without scheme and host.
        path: OneLine,
        /// Body of the request; omitted if the request has no body.
        body: Option<FreeForm>,
    }
}

answer! {
    /// The effects of a change on documents.
    EffectsJson of effects: Effects {
        /// Drafts that would be created.
        opened: Vec<DocumentJson> = &effects.opened,
        /// Documents that would be issued.
        issued: Vec<DocumentJson> = &effects.issued,
        /// Drafts whose content would change.
        recomputed: Vec<DocumentJson> = &effects.recomputed,
        /// Documents that would be voided.
        voided: Vec<DocumentJson> = &effects.voided,
        /// Issued documents whose paid, credited or written-off amounts would change.
        settled: Vec<DocumentJson> = &effects.settled,
        /// The current state of those documents above that already exist.
        before: Vec<DocumentJson> = &effects.before,
        /// For a created or changed contract: the documents of its current and next period that do not exist yet.
        planned: Vec<DocumentJson> = &effects.planned,
        /// Always true.
        dry_run: bool = true,
    }
}
