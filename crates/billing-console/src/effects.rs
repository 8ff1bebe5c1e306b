//! The preview of a change's effects on documents: the amounts before and after the change in one table, with totals.

use std::collections::BTreeSet;

use maud::{Markup, html};
use rust_decimal::Decimal;

use crate::document::{lines, title, totals};
use crate::parts::{amount_alone, day, href, link, name, words};
use billing_api::dto::documents::DocumentJson;
use billing_api::dto::effects::{CreditChangeJson, DocumentChangeJson, EffectsJson, FigureChangeJson};
use billing_api::dto::imports::UndoResultJson;
use billing_api::dto::values::DateText;
use billing_api::dto::warnings::WarningJson;
use billing_api::json_view::{JsonAnswer, JsonView};
use serde_json::{Value, json};

/// A change that awaits confirmation.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Page title.
    pub title: String,
    /// Additional description, for effects beyond documents.
    pub tells: &'static str,
    /// Effects according to the API.
    pub effects: JsonAnswer<EffectsJson>,
    /// Whether the visitor accepted the warnings.
    pub is_accepted: bool,
    /// Target of the form.
    pub action: String,
    /// Button label.
    pub button: &'static str,
    /// All submitted fields.
    pub submitted: Vec<(String, String)>,
    /// Whether a form exists to return to.
    pub has_form: bool,
    /// Target of the cancel link.
    pub back: String,
}

/// Form field that confirms the change.
pub const CONFIRMED: &str = "confirmed";
/// Form field that accepts the warnings of a preview.
pub const ACCEPTED: &str = "accepted";
/// Form field that returns to the form.
pub const AGAIN: &str = "again";

/// Effects on documents and their descriptions.
const EFFECTS: &[(&str, &str)] = &[
    ("ISSUED", "Would be issued"),
    ("VOIDED", "Would be voided"),
    ("OPENED", "Would be created as a draft"),
    ("RECOMPUTED", "Draft that would change"),
    ("SETTLED", "Settlement would change"),
    ("PLANNED", "Upcoming document"),
    ("REMOVED", "Would no longer be billed"),
];
/// Maximum number of rows for a figure in a currency.
const MAX_ROWS: usize = 50;
/// Maximum number of documents in a currency after an undo.
const MAX_UNDONE: usize = 20;
/// Maximum number of grants whose free credit is shown.
pub const MAX_CREDITS: usize = 20;
/// Field that the console adds to a change of free credit: the name of the grant. The API has it in an answer of its own. A grant
/// that the change would create has none.
pub const GRANT_NAME: &str = "grant_name";
/// Maximum number of documents that are shown with all lines.
const MAX_WHOLE: usize = 5;

/// Returns whether the change affects any document or any free credit.
pub fn is_seen(effects: JsonView<'_, EffectsJson>) -> bool {
    !effects.changes().is_empty() || !effects.credits().is_empty()
}

/// Renders the preview page.
pub fn preview(preview: &Preview) -> Markup {
    let effects = preview.effects.view();
    html! {
        h1 { (preview.title) }
        @if !preview.tells.is_empty() { p { (preview.tells) } }
        p.muted { "Preview. Nothing is saved yet." }
        @if is_seen(effects) {
            (amount_changes(effects))
            (whole_documents(effects))
        } @else { p { "No documents would change." } }
        form.actions method="post" action=(preview.action) {
            @for (name, value) in &preview.submitted { input type="hidden" name=(name) value=(value); }
            (warnings(effects.warnings(), preview.is_accepted))
            button name=(CONFIRMED) value="yes" { (preview.button) }
            @if preview.has_form { button.plain name=(AGAIN) value="yes" { "Edit" } }
            a href=(preview.back) { "Cancel" }
        }
    }
}

/// Renders the possible mistakes in a change as a question, which a form asks before it carries out the change.
pub(crate) fn warnings(warnings: JsonView<'_, Vec<WarningJson>>, is_accepted: bool) -> Markup {
    html! {
        @for warning in warnings.items() {
            @let contract = warning.contract_ref();
            p.notice.refused role="alert" {
                "Possible mistake: " (name(warning.detail())) ". "
                @if contract.is_there() { a href=(href(&["contracts", &contract.to_text()])) { "Show contract" } }
            }
        }
        @if !warnings.is_empty() { (acceptance(is_accepted)) }
    }
}

/// Renders the check box that accepts warnings.
pub(crate) fn acceptance(is_accepted: bool) -> Markup {
    html! {
        label.check {
            input type="checkbox" name=(ACCEPTED) value="yes" checked[is_accepted];
            span { "It is not a mistake: continue" }
        }
    }
}

/// Renders the amounts of all documents before and after the change, with totals by currency.
pub(crate) fn amount_changes(effects: JsonView<'_, EffectsJson>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Amounts before and after the change" {
            table.changes {
                thead { tr {
                    th scope="col" { "Document" }
                    th.amount scope="col" { "Current" }
                    th.amount scope="col" { "New" }
                    th.amount scope="col" { "Difference" }
                } }
                @for totals in effects.totals().items() { (group(effects, &totals.currency().to_text(), &BILLED, totals.billed())) }
                @for totals in effects.totals().items() {
                    (group(effects, &totals.currency().to_text(), &OUTSTANDING, totals.outstanding()))
                }
                (free_credit(effects.credits()))
            }
        }
    }
}

/// Renders the billed amounts of documents before and after the undo of an import, with totals by currency.
pub(crate) fn changed_amounts(undone: JsonView<'_, UndoResultJson>) -> Markup {
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Amounts before and after the undo" {
            table.changes {
                thead { tr {
                    th scope="col" { "Document" }
                    th.amount scope="col" { "Before" }
                    th.amount scope="col" { "After" }
                    th.amount scope="col" { "Difference" }
                } }
                @for totals in undone.totals().items() {
                    @let currency = totals.currency().to_text();
                    @let changes: Vec<_> = undone.changes().items().filter(|change| change.currency().is(&currency)).collect();
                    tbody {
                        tr { th colspan="4" scope="rowgroup" { "Billed amounts in " (currency) } }
                        @for change in changes.iter().take(MAX_UNDONE) { tr {
                            th scope="row" {
                                (link(Some(href(&["documents", &change.document_ref().to_text()])), &title(change.kind(), change.document_number())))
                                " " (name(change.customer_name()))
                                div.muted { (period(change.period_start(), change.period_end())) }
                            }
                            (amounts(change.billed(), &currency))
                        } }
                        @if changes.len() > MAX_UNDONE || undone.more_changes().is_amount() {
                            tr { td colspan="4" { "Further documents are included in the total." } }
                        }
                        tr.total { th scope="row" { "Total" } (amounts(totals.billed(), &currency)) }
                    }
                }
            }
        }
    }
}

/// A figure that a preview compares.
struct ComparedFigure {
    heading: &'static str,
    of: for<'v> fn(JsonView<'v, DocumentChangeJson>) -> JsonView<'v, FigureChangeJson>,
    /// Whether settling a document concerns the figure.
    is_of_settlement: bool,
}

const BILLED: ComparedFigure =
    ComparedFigure { heading: "Billed amounts", of: |change| change.billed(), is_of_settlement: false };
const OUTSTANDING: ComparedFigure =
    ComparedFigure { heading: "Outstanding amounts", of: |change| change.outstanding(), is_of_settlement: true };

/// Renders a figure of all documents in a currency. Omits a figure that the change does not concern.
fn group(
    effects: JsonView<'_, EffectsJson>,
    currency: &str,
    figure: &ComparedFigure,
    total: JsonView<'_, FigureChangeJson>,
) -> Markup {
    let ComparedFigure { heading, of, is_of_settlement } = figure;
    let has_figure = |change: &JsonView<'_, DocumentChangeJson>| {
        let figure = of(*change);
        figure.before().is_there() || figure.after().is_there()
    };
    let of_currency = effects.changes().items().filter(|change| change.currency().is(currency));
    let changes: Vec<JsonView<'_, DocumentChangeJson>> = of_currency.filter(has_figure).collect();
    let is_concerned = |change: &JsonView<'_, DocumentChangeJson>| {
        of(*change).difference().is_amount() || change.effect().is("SETTLED") == *is_of_settlement
    };
    let more = changes.len().saturating_sub(MAX_ROWS);
    html! {
        @if changes.iter().any(is_concerned) {
            tbody {
                tr { th colspan="4" scope="rowgroup" { (heading) " in " (currency) } }
                @for change in changes.iter().take(MAX_ROWS) {
                    tr { th scope="row" { (document(effects, *change)) } (amounts(of(*change), currency)) }
                }
                @if more > 0 { tr { td colspan="4" { "Further documents, included in the total: " (more) } } }
                tr.total { th scope="row" { "Total" } (amounts(total, currency)) }
            }
        }
    }
}

/// Renders the free credit of grants before and after the change, grouped by currency.
fn free_credit(credits: JsonView<'_, Vec<CreditChangeJson>>) -> Markup {
    let shown: Vec<JsonView<'_, CreditChangeJson>> = credits.items().take(MAX_CREDITS).collect();
    let currencies: BTreeSet<String> = shown.iter().map(|change| change.currency().to_text()).collect();
    let more = credits.items().count() - shown.len();
    html! {
        @for currency in &currencies {
            tbody {
                tr { th colspan="4" scope="rowgroup" { "Free prepaid credit in " (currency) } }
                @for change in shown.iter().filter(|change| change.currency().is(currency)) {
                    @let grant = change.any().named(GRANT_NAME);
                    @let page = href(&["credit", &change.grant_ref().to_text()]);
                    tr {
                        th scope="row" { @if grant.is_there() { (link(Some(page), &grant.to_text())) } @else { "New credit" } }
                        (amounts(JsonView::of(&figure_of(*change)), currency))
                    }
                }
            }
        }
        @if more > 0 { tbody { tr { td colspan="4" { "Further grants whose free credit would change: " (more) } } } }
    }
}

/// Returns a change of free credit as the change of a figure.
fn figure_of(change: JsonView<'_, CreditChangeJson>) -> Value {
    let (before, after) = (change.free_before(), change.free());
    let [was, is] = [before, after].map(|amount| Decimal::from_str_exact(&amount.to_text()).unwrap_or_default());
    // The difference keeps its exact digits, like the amounts.
    let difference = serde_json::from_str::<Value>(&(is - was).normalize().to_string()).unwrap_or_default();
    json!({"before": before.json(), "after": after.json(), "difference": difference})
}

/// Renders a document with its effect and period.
fn document(effects: JsonView<'_, EffectsJson>, change: JsonView<'_, DocumentChangeJson>) -> Markup {
    let reference = change.document_ref();
    // A document that does not exist yet has no page.
    let exists = reference.is_there() && effects.before().items().any(|before| before.document_ref().json() == reference.json());
    let customer = change.customer_ref();
    let has_others = effects.changes().items().any(|other| other.customer_ref().json() != customer.json());
    html! {
        (link(exists.then(|| href(&["documents", &reference.to_text()])), &title(change.kind(), change.document_number())))
        @if has_others { " " (name(change.customer_name())) }
        div.muted { (effect(change)) " · " (period(change.period_start(), change.period_end())) }
    }
}

/// Renders the first and the last day of a document's period.
fn period(first: JsonView<'_, DateText>, last: JsonView<'_, DateText>) -> Markup {
    html! { (day(first)) " – " (day(last)) }
}

/// Describes the effect on a document. A new state is more specific than a change of the settlement.
fn effect(change: JsonView<'_, DocumentChangeJson>) -> String {
    let (code, before, after) = (change.effect().to_text(), change.state_before().to_text(), change.state().to_text());
    if code == "SETTLED" && before != after {
        return format!("{} → {}", words(&before), words(&after));
    }
    EFFECTS.iter().find(|(known, _)| *known == code).map_or_else(|| words(&code), |(_, text)| (*text).to_owned())
}

/// Renders the cells of a figure before and after the change, and of the difference.
fn amounts(figure: JsonView<'_, FigureChangeJson>, currency: &str) -> Markup {
    let difference = figure.difference();
    let is_increase = difference.is_amount() && !difference.to_text().starts_with('-');
    html! {
        @for amount in [figure.before(), figure.after()] {
            td.amount { @if amount.is_there() { (amount_alone(&amount.to_text(), currency)) } @else { "–" } }
        }
        td.amount { @if is_increase { "+" } (amount_alone(&difference.to_text(), currency)) }
    }
}

/// Renders the first documents with all lines, as they would be.
pub(crate) fn whole_documents(effects: JsonView<'_, EffectsJson>) -> Markup {
    let lists =
        [effects.issued(), effects.voided(), effects.opened(), effects.recomputed(), effects.settled(), effects.planned()];
    let documents: Vec<JsonView<'_, DocumentJson>> = lists.into_iter().flat_map(JsonView::items).collect();
    let more = documents.len().saturating_sub(MAX_WHOLE);
    html! {
        @for document in documents.iter().take(MAX_WHOLE) {
            details {
                summary { "All lines of " (title(document.kind(), document.document_number())) ", " (period(document.period_start(), document.period_end())) }
                div.sheet { (lines(*document, JsonView::of(&Value::Null))) (totals(*document)) }
            }
        }
        @if more > 0 { p.muted { "Further documents without their lines on this page: " (more) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(effects: Value) -> String {
        preview(&Preview {
            title: "Void".to_owned(),
            tells: "",
            effects: effects.into(),
            is_accepted: false,
            action: "/console/do/void/d".to_owned(),
            button: "Void",
            submitted: vec![("reason".to_owned(), "\"><b>".to_owned())],
            has_form: true,
            back: "/console/documents/d".to_owned(),
        })
        .into_string()
    }

    /// Returns the change of a document in EUR.
    fn change(effect: &str, billed: [Value; 3], outstanding: [Value; 3]) -> Value {
        json!({"effect": effect, "document_ref": "d", "kind": "INVOICE", "document_number": "UB-INV-1", "customer_ref": "acme",
            "customer_name": "Acme", "period_start": "2026-01-01", "period_end": "2026-01-31", "currency": "EUR",
            "state_before": "ISSUED", "state": "PAID", "billed": figure(&billed), "outstanding": figure(&outstanding)})
    }

    fn figure([before, after, difference]: &[Value; 3]) -> Value {
        json!({"before": before, "after": after, "difference": difference})
    }

    /// Returns the places of texts in a page.
    fn places<const N: usize>(page: &str, texts: [&str; N]) -> [usize; N] {
        texts.map(|text| page.find(text).unwrap_or_else(|| panic!("{text} in {page}")))
    }

    #[test]
    fn a_document_is_shown_as_it_is_and_as_it_would_be() {
        let billed = || [json!(100), json!(80), json!(-20)];
        let (nothing, total) = (|| [json!(null), json!(null), json!(0)], [json!(1000), json!(980), json!(-20)]);
        let page = shown(json!({
            "changes": [change("RECOMPUTED", billed(), nothing())],
            "totals": [{"currency": "EUR", "billed": figure(&total), "outstanding": figure(&nothing())}],
            "before": [{"document_ref": "d"}],
        }));
        let texts =
            ["Billed amounts in EUR", "Draft that would change", ">100.00<", ">80.00<", "Total", ">1,000.00<", ">980.00<"];
        let found = places(&page, texts);
        assert!(found.is_sorted(), "{page}");
        assert_eq!(page.matches(">\u{2212}20.00<").count(), 2, "{page}");
        assert!(page.contains(">Invoice UB-INV-1</a>") && !page.contains("Outstanding"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;b&gt;\""), "{page}");
    }

    #[test]
    fn a_payment_is_shown_by_the_amounts_due_and_a_new_document_has_no_page() {
        let due = || [json!(null), json!(7), json!(7)];
        let page = shown(json!({
            "changes": [change("SETTLED", [json!(100), json!(100), json!(0)], due())],
            "totals": [{"currency": "EUR", "billed": figure(&[json!(100), json!(100), json!(0)]), "outstanding": figure(&due())}],
        }));
        assert!(page.contains("Outstanding amounts in EUR") && page.contains("Issued → Paid"), "{page}");
        assert!(page.contains(">–<") && page.contains(">+<data"), "{page}");
        assert!(!page.contains("Billed amounts") && !page.contains(">Invoice UB-INV-1</a>"), "{page}");
    }

    #[test]
    fn a_long_preview_ends_with_the_number_of_the_other_documents() {
        let changes = vec![change("PLANNED", [json!(1), json!(2), json!(1)], [json!(null), json!(null), json!(0)]); MAX_ROWS + 7];
        let documents = vec![json!({"kind": "INVOICE", "currency": "EUR"}); MAX_WHOLE + 3];
        let total = figure(&[json!(57), json!(114), json!(57)]);
        let totals = json!([{"currency": "EUR", "billed": total, "outstanding": total}]);
        let page = shown(json!({"changes": changes, "totals": totals, "planned": documents}));
        assert_eq!(page.matches("Upcoming document").count(), MAX_ROWS);
        assert!(page.contains("included in the total: 7") && page.contains("on this page: 3"), "{page}");
    }

    #[test]
    fn what_touches_no_document_says_so() {
        let nothing = json!({"opened": [], "issued": [], "changes": []});
        assert!(!is_seen(JsonView::of(&nothing)) && shown(nothing).contains("No documents would change."));
    }

    #[test]
    fn free_credit_is_shown_before_and_after_the_change_and_new_credit_has_no_page() {
        let credit = |name: Value, currency: &str, before: Value, after: Value| json!({"grant_ref": "g", GRANT_NAME: name, "currency": currency, "free_before": before, "free": after});
        let some = json!([
            credit(json!("Welcome <b>"), "EUR", json!(25), json!(12.5)),
            credit(Value::Null, "EUR", json!(0), json!(100)),
            credit(json!("Other"), "USD", json!(1), json!(0)),
        ]);
        let page = shown(json!({"changes": [], "credits": some}));
        let found =
            places(&page, ["Free prepaid credit in EUR", ">Welcome &lt;b&gt;</a>", "New credit", "credit in USD", ">Other</a>"]);
        assert!(found.is_sorted(), "{page}");
        for part in ["href=\"/console/credit/g\"", ">25.00<", ">12.50<", ">\u{2212}12.50<", ">+<data", ">\u{2212}1.00<"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let many = vec![credit(json!("Welcome"), "EUR", json!(1), json!(0)); MAX_CREDITS + 2];
        let page = shown(json!({"credits": many}));
        assert_eq!(page.matches(">Welcome</a>").count(), MAX_CREDITS);
        assert!(page.contains("would change: 2"), "{page}");
        assert!(!shown(json!({"changes": [], "credits": []})).contains("prepaid"), "no credit changes");
    }

    #[test]
    fn many_documents_of_an_undo_end_with_their_total() {
        let changes =
            vec![change("RECOMPUTED", [json!(3), json!(2), json!(-1)], [json!(null), json!(null), json!(0)]); MAX_UNDONE + 1];
        let total = figure(&[json!(63), json!(42), json!(-21)]);
        let totals = json!([{"currency": "EUR", "billed": total, "outstanding": total}]);
        let page = changed_amounts(JsonView::of(&json!({"changes": changes, "more_changes": 0, "totals": totals}))).into_string();
        assert_eq!(page.matches("UB-INV-1").count(), MAX_UNDONE);
        assert!(
            page.contains("Further documents are included") && page.contains(">63.00<") && page.contains(">42.00<"),
            "{page}"
        );
    }
}
