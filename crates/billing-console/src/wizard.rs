//! The wizard that creates a contract or adds products to a contract: customer, pricings, term, and quantities with a preview of
//! the first documents.

use maud::{Markup, html};

use crate::contract_tasks::{TaskField, hidden, inputs, more, refused};
use crate::effects::{CONFIRMED, amount_changes, is_seen, warnings, whole_documents};
use billing_api::dto::effects::EffectsJson;
use billing_api::json_view::JsonAnswer;

/// Everything around a step of the wizard.
#[derive(Clone, Debug)]
pub struct WizardPage {
    /// Page title.
    pub title: String,
    /// One sentence about the step.
    pub explanation: &'static str,
    /// The steps, in order.
    pub steps: Vec<WizardStep>,
    /// Target of the step's form.
    pub action: String,
    /// The choices of the other steps.
    pub hidden: Vec<(String, String)>,
    /// Target of the cancel link.
    pub back: String,
    /// Address of the form with all fields.
    pub advanced: String,
}

/// A step of the wizard.
#[derive(Clone, Debug)]
pub struct WizardStep {
    /// Label.
    pub label: &'static str,
    /// The choice of a completed step; empty for other steps.
    pub choice: String,
    /// Address of a completed step.
    pub address: Option<String>,
    /// Whether the page shows this step.
    pub is_current: bool,
}

/// Something that a step offers.
#[derive(Clone, Debug)]
pub struct WizardOption {
    /// Reference.
    pub reference: String,
    /// Name.
    pub name: String,
    /// Additional description, such as the currency.
    pub note: String,
    /// Whether the option is selected.
    pub is_selected: bool,
}

/// The last step: quantities and a preview of the documents for the submitted values.
#[derive(Clone, Debug)]
pub struct WizardPreview {
    /// Visible fields.
    pub fields: Vec<TaskField>,
    /// Fields that are visible on request.
    pub more: Vec<TaskField>,
    /// The request whose effects the page shows.
    pub previewed: String,
    /// Effects according to the API; null if the values are invalid.
    pub effects: JsonAnswer<EffectsJson>,
    /// Whether the visitor accepted the warnings.
    pub is_accepted: bool,
    /// Errors that belong to no field.
    pub others: Vec<String>,
    /// Label of the button that carries out the change.
    pub button: &'static str,
}

/// Hidden field with the request whose effects the last step shows.
pub const PREVIEWED: &str = "previewed";

/// Renders a page with a step.
fn step(wizard: &WizardPage, body: &Markup) -> Markup {
    html! {
        h1 { (wizard.title) }
        ol.progress aria-label="Steps" {
            @for step in &wizard.steps {
                li aria-current=[step.is_current.then_some("step")] {
                    @match &step.address {
                        Some(address) => a href=(address) { (step.label) },
                        None => (step.label),
                    }
                    @if !step.choice.is_empty() { div.muted { (step.choice) } }
                }
            }
        }
        p { (wizard.explanation) }
        (body)
        p.buttons { a href=(wizard.back) { "Cancel" } a.muted href=(wizard.advanced) { "Advanced" } }
    }
}

fn search_field(sought: &str, label: &str) -> Markup {
    html! {
        div.field {
            label for="field-q" { (label) }
            input #field-q type="search" name="q" value=(sought) maxlength="255";
        }
    }
}

/// Renders the choice of a customer. `options` has links; `sought` is the search text.
pub fn wizard_customers(wizard: &WizardPage, sought: &str, options: &[(WizardOption, String)]) -> Markup {
    let body = html! {
        form.filters method="get" action=(wizard.action) {
            (hidden(&wizard.hidden))
            (search_field(sought, "Search customers"))
            button { "Search" }
        }
        h2 { @if sought.is_empty() { "Newest customers" } @else { "Results" } }
        @if options.is_empty() { p.muted { "No customers found." } }
        ul.choice {
            @for (option, address) in options {
                li { a href=(address) { (option.name) } " " span.muted { (option.note) } }
            }
        }
    };
    step(wizard, &body)
}

/// Renders the choice of one or more pricings.
pub fn wizard_pricings(wizard: &WizardPage, sought: &str, options: &[WizardOption], others: &[String]) -> Markup {
    let body = html! {
        (refused(others, std::iter::empty()))
        form.stack method="get" action=(wizard.action) {
            (hidden(&wizard.hidden))
            div.filters {
                (search_field(sought, "Search pricings"))
                button.plain name="step" value="pricings" { "Search" }
            }
            fieldset.choices {
                legend { "Pricings" }
                @if options.is_empty() { p.muted { "No pricings found." } }
                @for option in options {
                    label.check {
                        input type="checkbox" name="pricing" value=(option.reference) checked[option.is_selected];
                        span { (option.name) " " span.muted { (option.note) } }
                    }
                }
            }
            div.buttons { button name="step" value="term" { "Continue" } }
        }
    };
    step(wizard, &body)
}

/// Renders the choice of the first day, the last day and the times of invoices.
pub fn wizard_term(wizard: &WizardPage, fields: &[TaskField]) -> Markup {
    let body = html! {
        (refused(&[], fields.iter()))
        form.stack.narrow.task method="get" action=(wizard.action) {
            (hidden(&wizard.hidden))
            (inputs(fields))
            div.buttons { button name="step" value="quantities" { "Continue" } }
        }
    };
    step(wizard, &body)
}

/// Renders the last step: quantities and discount, and the first documents for these values.
pub fn wizard_preview(wizard: &WizardPage, preview: &WizardPreview) -> Markup {
    let effects = preview.effects.view();
    let body = html! {
        (refused(&preview.others, preview.fields.iter().chain(&preview.more)))
        form.stack method="post" action=(wizard.action) data-live {
            (hidden(&wizard.hidden))
            div.stack.narrow {
                (inputs(&preview.fields))
                (more(&preview.more))
                div.buttons { button.plain { "Update preview" } }
            }
            // The script replaces this part, with the request that it previews, while the visitor types.
            div data-result {
                @if effects.is_there() {
                    input type="hidden" name=(PREVIEWED) value=(preview.previewed);
                    section {
                        h2 { "Preview" }
                        p.muted { "Nothing is saved yet." }
                        @if is_seen(effects) {
                            (amount_changes(effects))
                            (whole_documents(effects))
                        } @else { p { "No documents in the current and the next period." } }
                    }
                    (warnings(effects.warnings(), preview.is_accepted))
                    div.buttons { button name=(CONFIRMED) value="yes" { (preview.button) } }
                }
            }
        }
    };
    step(wizard, &body)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::contract_tasks::TaskFieldKind;

    fn wizard() -> WizardPage {
        let step = |label, choice: &str, address: Option<&str>, is_current| WizardStep {
            label,
            choice: choice.to_owned(),
            address: address.map(str::to_owned),
            is_current,
        };
        WizardPage {
            title: "New contract".to_owned(),
            explanation: "Choose the prices.",
            steps: vec![step("Customer", "Acme <b>", Some("?step=customer"), false), step("Pricings", "", None, true)],
            action: "/console/new/contracts".to_owned(),
            hidden: vec![("customer_ref".to_owned(), "acme\"".to_owned())],
            back: "/console/contracts".to_owned(),
            advanced: "/console/new/contracts?advanced=yes".to_owned(),
        }
    }

    #[test]
    fn a_step_keeps_the_choices_of_the_others_and_shows_the_current_one() {
        let option =
            WizardOption { reference: "team".to_owned(), name: "Team <i>".to_owned(), note: "EUR".to_owned(), is_selected: true };
        let page = wizard_pricings(&wizard(), "te\"am", &[option], &[]).into_string();
        for part in [
            "aria-current=\"step\">Pricings",
            "Acme &lt;b&gt;",
            "name=\"customer_ref\" value=\"acme&quot;\"",
            "name=\"pricing\" value=\"team\" checked",
            "Team &lt;i&gt;",
            "value=\"te&quot;am\"",
            "?advanced=yes",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }

    #[test]
    fn a_contract_is_created_only_from_a_preview() {
        let fields = vec![TaskField::new("Seats", "quantity/team/seats", TaskFieldKind::Number, "10".to_owned())];
        let preview = |effects: Value, others: &[&str]| WizardPreview {
            fields: fields.clone(),
            more: Vec::new(),
            previewed: "{\"a\":1}".to_owned(),
            effects: effects.into(),
            is_accepted: false,
            others: others.iter().map(|other| (*other).to_owned()).collect(),
            button: "Create contract",
        };
        let shown = wizard_preview(&wizard(), &preview(json!({"changes": []}), &[])).into_string();
        assert!(shown.contains("Create contract</button>") && shown.contains("Update preview"), "{shown}");
        assert!(shown.contains("name=\"previewed\" value=\"{&quot;a&quot;:1}\""), "{shown}");
        let invalid = wizard_preview(&wizard(), &preview(Value::Null, &["the customer has no address"])).into_string();
        assert!(!invalid.contains("Create contract</button>") && invalid.contains("the customer has no address"), "{invalid}");
    }
}
