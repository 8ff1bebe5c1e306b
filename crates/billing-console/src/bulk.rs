//! Actions on several selected elements of a list.

use maud::{Markup, html};

use crate::effects::CONFIRMED;
use crate::list::Listing;
use crate::parts::{amount_of, href, link, words};
use billing_api::json_view::JsonView;

/// Id of the form to which the check boxes belong.
const FORM: &str = "bulk";

/// The selection of elements on the page of a list.
#[derive(Clone, Debug)]
pub struct Selection {
    /// Field with the reference of an element.
    pub reference: &'static str,
    /// Field with the name of an element.
    pub name: &'static str,
    /// Words and labels of the available actions.
    pub actions: Vec<(&'static str, &'static str)>,
    /// Whether all elements of the page are selected.
    pub is_all: bool,
    /// Query of the page with all or no elements selected.
    pub toggled: String,
}

impl Selection {
    /// Form field with the reference of a selected element.
    pub const FIELD: &str = "ref";
    /// Form field with the word of the action.
    pub const ACTION: &str = "do";

    /// Renders the check box of an element.
    pub(crate) fn check_box(&self, element: JsonView<'_>) -> Markup {
        let label = format!("Select {}", element.at_path(self.name).to_text());
        html! {
            input type="checkbox" form=(FORM) name=(Self::FIELD) value=(element.at_path(self.reference).to_text()) checked[self.is_all]
                aria-label=(label);
        }
    }
}

/// Renders the actions on the selected elements of a list.
pub(crate) fn selection(listing: &Listing, selected: &Selection) -> Markup {
    html! {
        form.actions.selection id=(FORM) method="post" action=(href(&["bulk", listing.part])) {
            span.muted { "Selected:" }
            @for (word, label) in &selected.actions {
                button.plain name=(Selection::ACTION) value=(word) { (label) }
            }
            a href=(format!("?{}", selected.toggled)) { @if selected.is_all { "Select none" } @else { "Select all on this page" } }
        }
    }
}

/// An action on several documents, before or after it is carried out.
#[derive(Clone, Debug, Default)]
pub struct BulkPage {
    /// Page title.
    pub title: &'static str,
    /// Description of the action or of its result.
    pub description: String,
    /// One row for each step.
    pub rows: Vec<BulkRow>,
    /// Sums of the amounts by currency: the amount, and the currency.
    pub totals: Vec<(String, String)>,
    /// Target of the form.
    pub action: String,
    /// Button label. Without a label, nothing can be carried out.
    pub button: Option<&'static str>,
    /// Fields of the form without an input.
    pub hidden: Vec<(String, String)>,
    /// Target of the link back.
    pub back: String,
}

/// A step of an action on several documents.
#[derive(Clone, Debug, Default)]
pub struct BulkRow {
    /// Documents: kind, number and reference. The second document is the target of an amount.
    pub documents: Vec<[String; 3]>,
    /// Customer name.
    pub customer: String,
    /// Amount; empty if unknown.
    pub amount: String,
    /// Currency of the amount.
    pub currency: String,
    /// Effect of the step.
    pub effect: String,
    /// The reason why the step fails.
    pub problem: Option<String>,
}

/// Renders the preview of an action.
pub fn bulk_preview(page: &BulkPage) -> Markup {
    html! {
        h1 { (page.title) }
        p { (page.description) }
        @if page.button.is_some() { p.muted { "Preview. Nothing is saved yet." } }
        (rows(page))
        form.actions method="post" action=(page.action) {
            @for (name, value) in &page.hidden { input type="hidden" name=(name) value=(value); }
            @if let Some(button) = page.button { button name=(CONFIRMED) value="yes" { (button) } }
            a href=(page.back) { @if page.button.is_some() { "Cancel" } @else { "Back to the documents" } }
        }
    }
}

/// Renders the result of an action.
pub fn bulk_result(page: &BulkPage) -> Markup {
    let is_refused = page.rows.iter().any(|row| row.problem.is_some());
    html! {
        h1 { (page.title) }
        p.notice.refused[is_refused] role="status" { (page.description) }
        (rows(page))
        p { a href=(page.back) { "Back to the documents" } }
    }
}

/// Renders the steps. Failing ones come first.
fn rows(page: &BulkPage) -> Markup {
    let (failing, others): (Vec<&BulkRow>, Vec<&BulkRow>) = page.rows.iter().partition(|row| row.problem.is_some());
    html! {
        @if !page.rows.is_empty() {
            div.scrolls tabindex="0" role="region" aria-label="Documents" {
                table {
                    thead { tr {
                        th scope="col" { "Document" }
                        th.amount scope="col" { "Amount" }
                        th scope="col" { "Effect" }
                        th scope="col" { "Customer" }
                    } }
                    tbody { @for row in failing.into_iter().chain(others) { tr {
                        td { @for (place, document) in row.documents.iter().enumerate() {
                            @if place > 0 { " → " }
                            (name(document))
                        } }
                        td.amount { (amount(&row.amount, &row.currency)) }
                        td.name { @match &row.problem { Some(problem) => { strong { "Not possible: " } (problem) } None => { (row.effect) } } }
                        td.name { (row.customer) }
                    } } }
                    tfoot { @for (sum, currency) in &page.totals { tr {
                        th scope="row" { "Total" }
                        td.amount { (amount(sum, currency)) }
                        td colspan="2" {}
                    } } }
                }
            }
        }
    }
}

fn name([kind, number, reference]: &[String; 3]) -> Markup {
    link(Some(href(&["documents", reference])), format!("{} {number}", words(kind)).trim())
}

fn amount(amount: &str, currency: &str) -> Markup {
    html! { @if !amount.is_empty() { (amount_of(amount, currency)) } }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::listings::DOCUMENTS;

    fn page() -> BulkPage {
        let row = |number: &str, problem: Option<&str>| BulkRow {
            documents: vec![["INVOICE".to_owned(), number.to_owned(), number.to_lowercase()]],
            customer: "Acme <Ltd>".to_owned(),
            amount: "1234.50".to_owned(),
            currency: "EUR".to_owned(),
            effect: "Amount due 1234.50".to_owned(),
            problem: problem.map(str::to_owned),
        };
        BulkPage {
            title: "Issue documents",
            rows: vec![row("UB-1", None), row("UB-2", Some("it is issued already"))],
            totals: vec![("1234.50".to_owned(), "EUR".to_owned())],
            hidden: vec![("ref".to_owned(), "ub-1".to_owned())],
            button: Some("Issue 1 document"),
            ..BulkPage::default()
        }
    }

    #[test]
    fn a_preview_names_what_fails_first_and_can_be_confirmed() {
        let shown = bulk_preview(&page()).into_string();
        let (failing, other) = (shown.find("Invoice UB-2").expect("a row"), shown.find("Invoice UB-1").expect("a row"));
        assert!(failing < other, "{shown}");
        assert!(shown.contains("Not possible: </strong>it is issued already") && shown.contains("1,234.50"), "{shown}");
        assert!(shown.contains("name=\"confirmed\"") && shown.contains("name=\"ref\" value=\"ub-1\""), "{shown}");
        assert!(!shown.contains("<Ltd>"), "{shown}");
        let nothing = bulk_preview(&BulkPage { button: None, rows: Vec::new(), ..page() }).into_string();
        assert!(!nothing.contains("confirmed") && !nothing.contains("<table"), "{nothing}");
    }

    #[test]
    fn a_result_is_marked_if_a_step_failed() {
        assert!(bulk_result(&page()).into_string().contains("class=\"notice refused\""));
        let rows = vec![BulkRow::default()];
        assert!(bulk_result(&BulkPage { rows, ..page() }).into_string().contains("class=\"notice\""));
    }

    #[test]
    fn a_check_box_names_its_element_and_belongs_to_the_form_of_the_actions() {
        let selected = Selection {
            reference: "document_ref",
            name: "document_number",
            actions: vec![("issue", "Issue")],
            is_all: true,
            toggled: "state=DRAFT".to_owned(),
        };
        let element = json!({"document_ref": "d", "document_number": "UB-1"});
        let check_box = selected.check_box(JsonView::of(&element)).into_string();
        assert!(check_box.contains("form=\"bulk\"") && check_box.contains("aria-label=\"Select UB-1\""), "{check_box}");
        let shown = selection(&DOCUMENTS, &selected).into_string();
        assert!(shown.contains("id=\"bulk\"") && shown.contains("action=\"/console/bulk/documents\""), "{shown}");
        assert!(shown.contains("Select none") && shown.contains("value=\"issue\""), "{shown}");
    }
}
