//! Dry runs: what is asked for, and what it would do.

use billing_application::dry_run::Effects;
use billing_domain::text::OneLine;

use super::declare::{answer, body};
use super::documents::DocumentJson;
use super::values::FreeForm;

body! {
    /// A request that isn't to be carried out.
    DryRunBody {
        /// The path that it would be sent to, without the address in front.
        path: OneLine,
        /// The body that it would have; left out where it has none.
        body: Option<FreeForm>,
    }
}

answer! {
    /// What a change would do to documents.
    EffectsJson of effects: Effects {
        /// Drafts that it would open.
        opened: Vec<DocumentJson> = &effects.opened,
        /// Documents that it would issue.
        issued: Vec<DocumentJson> = &effects.issued,
        /// Drafts that would say something else.
        recomputed: Vec<DocumentJson> = &effects.recomputed,
        /// Documents that it would put out of force.
        voided: Vec<DocumentJson> = &effects.voided,
        /// Issued documents of which something else would be paid, credited or given up on.
        settled: Vec<DocumentJson> = &effects.settled,
        /// All of these that are there already, as they are now.
        before: Vec<DocumentJson> = &effects.before,
        /// Of a contract that would be made or changed: what it would bill in its current and its next period and isn't opened yet.
        planned: Vec<DocumentJson> = &effects.planned,
        /// Always true.
        dry_run: bool = true,
    }
}
