//! Dry runs: requests and their effects.

use billing_application::dry_run::{CreditChange, DocumentChange, EffectTotals, Effects, FigureChange};
use billing_domain::text::OneLine;

use super::declare::{answer, body};
use super::documents::DocumentJson;
use super::enums::{DocumentKindWord, DocumentStateWord, EffectWord};
use super::values::{CurrencyCode, DateText, FreeForm, LineText};
use super::warnings::WarningJson;
use super::wire::{AssignedRef, ExactNumber, NamedRef};

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
        /// The documents of all lists as they are now, or as they are planned under the current terms. Planned documents
        /// have neither reference nor number. Includes planned documents that would no longer be planned.
        before: Vec<DocumentJson> = &effects.before,
        /// For a created or changed contract: the documents of its current and next period that do not exist yet.
        planned: Vec<DocumentJson> = &effects.planned,
        /// The figures of each document of these lists, before and after the change.
        changes: Vec<DocumentChangeJson> = &effects.changes,
        /// The sums of `changes` by currency.
        totals: Vec<EffectTotalsJson> = &effects.totals,
        /// Credit grants whose free credit would change.
        credits: Vec<CreditChangeJson> = &effects.credits,
        /// Possible mistakes in the request; omitted if there are none.
        @omitted warnings: Option<Vec<WarningJson>> = WarningJson::any_of(&effects.warnings),
        /// Always true.
        dry_run: bool = true,
    }
}

answer! {
    /// The free credit of a grant before and after a change.
    CreditChangeJson of change: CreditChange {
        /// Grant.
        grant_ref: AssignedRef = change.grant_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = change.free.currency(),
        /// Free credit before the change.
        free_before: ExactNumber = change.free_before,
        /// Free credit after the change.
        free: ExactNumber = change.free,
    }
}

answer! {
    /// The figures of a document before and after a change.
    DocumentChangeJson of change: DocumentChange {
        let document = change.document.as_ref();
        /// Effect on the document.
        effect: EffectWord = change.effect,
        /// Reference; null for a planned document.
        document_ref: Option<AssignedRef> = document.map(|(document_ref, _)| document_ref),
        /// Number; null for a planned document.
        #[schema(example = "UB-INV-1")]
        document_number: Option<String> = document.map(|(_, number)| number.to_string()),
        /// Document kind.
        kind: DocumentKindWord = change.kind,
        /// Billed contract.
        contract_ref: AssignedRef = change.contract_ref,
        /// Number of the contract.
        #[schema(example = "C-1")]
        contract_number: String = change.contract_number.clone(),
        /// Customer reference.
        customer_ref: NamedRef = &change.customer_ref,
        /// Customer name.
        customer_name: LineText = &change.customer_name,
        /// First day of the document's own period.
        period_start: DateText = change.period.start(),
        /// Last day of the document's own period.
        period_end: DateText = change.period.last_day(),
        /// Currency of the figures.
        currency: CurrencyCode = change.currency,
        /// State before the change; null for a document that neither exists nor is planned.
        state_before: Option<DocumentStateWord> = change.state_before,
        /// State after the change; null for a document that would no longer be planned.
        state: Option<DocumentStateWord> = change.state,
        /// Amount that the document bills: its total, negative for a credit, and 0 for a void document.
        billed: FigureChangeJson = &change.billed,
        /// Amount due, or the unapplied amount of a credit as a negative number. Drafts and planned documents have none.
        outstanding: FigureChangeJson = &change.outstanding,
    }
}

answer! {
    /// A figure before and after a change.
    FigureChangeJson of figure: FigureChange {
        /// Figure before the change; null if the document does not have it.
        before: Option<ExactNumber> = figure.before,
        /// Figure after the change; null if the document does not have it.
        after: Option<ExactNumber> = figure.after,
        /// `after − before`; null counts as 0.
        difference: ExactNumber = figure.difference,
    }
}

answer! {
    /// The sums of all changed documents in a currency.
    EffectTotalsJson of totals: EffectTotals {
        /// Currency.
        currency: CurrencyCode = totals.currency,
        /// Sums of the billed amounts.
        billed: FigureChangeJson = &totals.billed,
        /// Sums of the outstanding amounts.
        outstanding: FigureChangeJson = &totals.outstanding,
    }
}
