//! Forms that create and change objects and run actions. Fields come from the OpenAPI schema of the operation's body. If
//! an action would change documents, the form shows a preview first.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use billing_application::UseCase;
use billing_console::{AGAIN, CONFIRMED, Form, JsonView, Listing, Preview, RESIZE, Suggestions, href};
use serde_json::Value;

use super::api_client::written;
use super::form_data::{FormData, field, key};
use super::form_fields::{self, InitialValues};
use super::lists::some_of;
use super::openapi_index::{BodyField, BodyFieldKind, shapes};
use super::page_builder::render_page;
use super::reply::{belongs_beside, html, to, told};
use super::resources;
use super::session_user::SessionUser;
use crate::operation::{AuthRequirement, Operation};
use crate::operations;
use crate::problem::Problem;

/// Maximum number of suggestions for a reference field.
const SUGGESTED: &str = "200";

/// A form of the console.
struct FormAction {
    /// Place of the form: `new` or `edit` and a part of the console, or `do` and an action.
    place: [&'static str; 2],
    /// Id of the operation.
    operation: &'static str,
    title: &'static str,
    description: &'static str,
    button: &'static str,
    /// Notice after success.
    success_message: &'static str,
    /// Part of the console that contains the edited object or the action's subject.
    of: Option<&'static str>,
    /// Body fields that the form omits: the reference, and fields without use in a form.
    hidden_fields: &'static [&'static str],
    /// Body field that receives the reference.
    reference_field: Option<&'static str>,
    /// Body field that is prefilled from another field of the object.
    prefill: Option<(&'static str, &'static str)>,
    /// Redirect after success: a part of the console, and the response field with the reference. Without a field, it
    /// leads to the list.
    redirect: (&'static str, &'static str),
}

impl FormAction {
    const fn new(place: [&'static str; 2], id: &'static str, title: &'static str) -> Self {
        Self {
            place,
            operation: id,
            title,
            description: "",
            button: "Create",
            success_message: "Changes saved.",
            of: None,
            hidden_fields: &[],
            reference_field: None,
            prefill: None,
            redirect: (place[1], ""),
        }
    }

    const fn edit(part: &'static str, id: &'static str, title: &'static str, reference: &'static [&'static str; 1]) -> Self {
        let leads = (part, reference[0]);
        Self { of: Some(part), hidden_fields: reference, redirect: leads, button: "Save", ..Self::new(["edit", part], id, title) }
    }

    const fn act(what: &'static str, part: &'static str, id: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: Some(part), button, ..Self::new(["do", what], id, title) }
    }

    /// Creates an action on a document that leads to a document.
    const fn on_document(what: &'static str, id: &'static str, title: &'static str, button: &'static str) -> Self {
        Self::act(what, "documents", id, title, button).leading("documents", "document_ref")
    }

    /// Creates an action on a payment or application that leads to a document, because these objects have no page of
    /// their own.
    const fn on_money(what: &'static str, id: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: None, ..Self::on_document(what, id, title, button) }
    }

    const fn beginning(self, field: &'static str, from: &'static str) -> Self {
        Self { prefill: Some((field, from)), ..self }
    }

    const fn leading(self, part: &'static str, reference: &'static str) -> Self {
        Self { redirect: (part, reference), ..self }
    }

    const fn telling(self, tells: &'static str) -> Self {
        Self { description: tells, ..self }
    }

    const fn confirming(self, success_message: &'static str) -> Self {
        Self { success_message, ..self }
    }

    fn operation(&self) -> Result<&'static Operation, Problem> {
        operations::named(self.operation)
    }

    fn use_case(&self) -> Result<UseCase, Problem> {
        match self.operation()?.needs {
            AuthRequirement::Permission(use_case) => Ok(use_case),
            AuthRequirement::Nothing | AuthRequirement::Anything => Err(Problem::unknown_route()),
        }
    }

    fn has_dry_run(&self) -> bool {
        self.operation().is_ok_and(|operation| operation.has_dry_run)
    }
}

/// All forms of the console.
const FORM_ACTIONS: &[FormAction] = &[
    FormAction::new(["new", "customers"], "create_customer", "New customer")
        .leading("customers", "customer_ref")
        .confirming("Customer created."),
    FormAction::edit("customers", "edit_customer", "Edit customer", &["customer_ref"]).confirming("Customer updated."),
    FormAction::new(["new", "usage-products"], "create_usage_product", "New usage product")
        .leading("usage-products", "usage_product_ref")
        .confirming("Usage product created."),
    FormAction::edit("usage-products", "edit_usage_product", "Edit usage product", &["usage_product_ref"])
        .confirming("Usage product updated."),
    FormAction::new(["new", "entities"], "create_entity", "New entity")
        .leading("entities", "entity_ref")
        .confirming("Entity created."),
    FormAction::edit("entities", "edit_entity", "Edit entity", &["entity_ref"]).confirming("Entity updated."),
    FormAction::new(["new", "bank-accounts"], "create_bank_account", "New bank account")
        .leading("bank-accounts", "billing_account_id")
        .confirming("Bank account created."),
    FormAction::edit("bank-accounts", "edit_bank_account", "Edit bank account", &["billing_account_id"])
        .confirming("Bank account updated."),
    FormAction::new(["new", "pricings"], "create_pricing", "New pricing")
        .leading("pricings", "product_pricing_ref")
        .confirming("Pricing created."),
    FormAction::edit("pricings", "edit_pricing", "Edit pricing", &["product_pricing_ref"])
        .telling("Existing contracts keep their prices. To apply the new prices, edit the contract and set Reprice to yes.")
        .confirming("Pricing updated."),
    FormAction::new(["new", "contracts"], "create_contract", "New contract")
        .leading("contracts", "contract_ref")
        .confirming("Contract created."),
    FormAction {
        hidden_fields: &["customer_ref"],
        ..FormAction::edit("contracts", "edit_contract", "Edit contract", &["contract_ref"])
    }
    .telling("List all products that the contract keeps. By default, changes apply from the next period of each product.")
    .confirming("Contract updated."),
    FormAction::act("cancel", "contracts", "cancel_contract", "Cancel contract", "Cancel contract")
        .leading("contracts", "contract_ref")
        .confirming("Cancellation recorded."),
    FormAction::act("resume", "contracts", "resume_contract", "Resume contract", "Resume contract")
        .leading("contracts", "contract_ref")
        .confirming("Contract resumed."),
    FormAction::act("quantity", "contracts", "change_quantity", "Change quantity", "Change quantity")
        .leading("contracts", "contract_ref")
        .confirming("Quantity changed."),
    FormAction {
        hidden_fields: &["contract_ref", "charge_ref"],
        reference_field: Some("contract_ref"),
        ..FormAction::act("charge", "contracts", "record_charge", "Add charge or credit", "Add charge")
    }
    .leading("charges", "charge_ref")
    .telling("A negative unit price creates a credit.")
    .confirming("Charge created."),
    FormAction::edit("charges", "edit_charge", "Edit charge", &["charge_ref"]).confirming("Charge updated."),
    FormAction::act("delete-charge", "charges", "delete_charge", "Delete charge", "Delete charge")
        .leading("charges", "")
        .confirming("Charge deleted."),
    FormAction::on_document("issue", "issue_document", "Issue document", "Issue document")
        .telling("The document becomes final. Usage reported for it later is billed by a debit or a credit.")
        .confirming("Document issued."),
    FormAction::on_document("void", "void_document", "Void document", "Void document")
        .telling(
            "The document is no longer in force. Its usage and fees are billed again if the contract still includes them. \
             Voiding cannot be undone.",
        )
        .confirming("Document voided."),
    FormAction::on_document("pay", "record_payment", "Record payment", "Record payment")
        .beginning("amount", "amount_due")
        .confirming("Payment recorded."),
    FormAction::on_document("write-off", "write_off", "Write off the amount due", "Write off amount")
        .telling("Set Undo to yes to reverse a write-off. The amount becomes due again.")
        .confirming("Write-off saved."),
    FormAction::on_document("refund", "refund", "Refund the unapplied amount", "Refund amount")
        .beginning("amount", "unapplied_amount")
        .confirming("Refund recorded."),
    FormAction::on_document("apply", "apply", "Apply the unapplied amount to a document", "Apply amount")
        .beginning("amount", "unapplied_amount")
        .confirming("Amount applied."),
    FormAction::on_money("refund-payment", "refund", "Refund the unapplied amount of a payment", "Refund amount")
        .confirming("Refund recorded."),
    FormAction::on_money("apply-payment", "apply", "Apply the unapplied amount of a payment to a document", "Apply amount")
        .confirming("Payment applied."),
    FormAction::on_money("unapply", "unapply", "Reverse application", "Reverse application").confirming("Application reversed."),
    FormAction::on_money("reverse", "reverse_payment", "Reverse payment", "Reverse payment").confirming("Payment reversed."),
    FormAction {
        hidden_fields: &["event_ref", "customer_ref", "usage_product_ref"],
        reference_field: Some("event_ref"),
        ..FormAction::edit("events", "update_event", "Edit usage event", &["event_ref"])
    }
    .confirming("Usage event updated."),
    FormAction::act("delete-event", "events", "delete_event", "Delete usage event", "Delete usage event")
        .leading("events", "")
        .confirming("Usage event deleted."),
];

/// Returns whether a form exists at a place.
pub(super) fn has(kind: &str, what: &str) -> bool {
    form_action(kind, what).is_ok()
}

/// Returns whether a form exists at a place and the visitor may submit it.
pub(super) fn may(visitor: &SessionUser, kind: &str, what: &str) -> bool {
    form_action(kind, what).and_then(FormAction::use_case).is_ok_and(|use_case| visitor.may(use_case))
}

fn form_action(kind: &str, what: &str) -> Result<&'static FormAction, Problem> {
    FORM_ACTIONS.iter().find(|action| action.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

/// Returns the notice after a successful action.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let (kind, what) = place.split_once('.')?;
    form_action(kind, what).ok().map(|action| action.success_message)
}

/// A form and the object it concerns.
pub(super) struct FormPage<'a> {
    visitor: &'a SessionUser,
    action: &'static FormAction,
    reference: Option<&'a str>,
    /// The existing object.
    present: Value,
}

impl<'a> FormPage<'a> {
    /// Loads the form at a place.
    ///
    /// # Errors
    /// Returns a problem if the form or its object does not exist, or if the visitor may not submit the form.
    pub(super) async fn at(
        visitor: &'a SessionUser,
        kind: &str,
        what: &str,
        reference: Option<&'a str>,
    ) -> Result<Self, Problem> {
        let action = form_action(kind, what)?;
        // New objects have no reference yet; all other forms require one.
        if reference.is_none() != (kind == "new") {
            return Err(Problem::unknown_route());
        }
        visitor.allow(action.use_case()?)?;
        let present = match (action.of, reference) {
            (Some(part), Some(reference)) => resources::read(visitor, part, reference).await?,
            _ => Value::Null,
        };
        Ok(Self { visitor, action, reference, present })
    }

    fn place(&self) -> Vec<&'a str> {
        self.action.place.into_iter().chain(self.reference).collect()
    }

    fn title(&self) -> String {
        match (self.action.place[0], self.reference) {
            ("edit", Some(reference)) => format!("{} {reference}", self.action.title),
            _ => self.action.title.to_owned(),
        }
    }

    /// Returns the fields of the form.
    fn shapes(&self) -> Vec<BodyField> {
        let kept = |shape: &&BodyField| !self.action.hidden_fields.contains(&shape.name.as_str()) && shape.name != "dry_run";
        shapes(self.action.operation).iter().filter(kept).cloned().collect()
    }

    /// Returns whether the form edits an existing object, so that unchanged fields keep their values.
    fn edits(&self) -> bool {
        self.action.place[0] == "edit"
    }

    /// Returns the page to return to.
    fn back(&self) -> String {
        match (self.action.of, self.reference) {
            (Some(part), Some(reference)) => href(&[part, reference]),
            _ => href(&[self.action.redirect.0]),
        }
    }

    /// Renders the form, or the preview if the operation has no fields.
    ///
    /// # Errors
    /// Returns the problem of a failed API call.
    pub(super) async fn show(&self) -> Result<String, Problem> {
        if self.shapes().is_empty() {
            let effects = self.rehearsed(&FormData::new()).await?;
            return Ok(self.preview(effects, &vec![("form_key".to_owned(), self.visitor.unique())]));
        }
        let begins = self.action.prefill.map(|(field, from)| {
            let mut said = serde_json::Map::new();
            said.insert(field.to_owned(), self.present.get(from).cloned().unwrap_or_default());
            Value::Object(said)
        });
        let source = match &begins {
            Some(begins) => InitialValues::Present(begins),
            None if self.edits() => InitialValues::Present(&self.present),
            None => InitialValues::Nothing,
        };
        self.form(source, None).await
    }

    /// Handles a submitted form.
    ///
    /// # Errors
    /// Returns problems that cannot be shown beside the form.
    pub(super) async fn take(&self, said: &FormData) -> Result<HttpResponse, Problem> {
        if let Some(wanted) = field(said, RESIZE) {
            return self.form(InitialValues::Said(&form_fields::resized(said, wanted)), None).await.map(html);
        }
        if field(said, AGAIN).is_some() {
            return self.form(InitialValues::Said(said), None).await.map(html);
        }
        let refused = match self.carry_out(said).await {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        if !belongs_beside(&refused) || self.shapes().is_empty() {
            return Err(refused);
        }
        let page = self.form(InitialValues::Said(said), Some(&refused)).await?;
        Ok(told(refused, page))
    }

    async fn carry_out(&self, said: &FormData) -> Result<HttpResponse, Problem> {
        if self.action.has_dry_run() && field(said, CONFIRMED).is_none() {
            let effects = self.rehearsed(said).await?;
            if billing_console::is_seen(&effects) || self.shapes().is_empty() {
                let page = self.preview(effects, said);
                return Ok(html(page));
            }
        }
        // The key prevents a second execution when the form is sent twice.
        let reference = self.reference.unwrap_or_default();
        let answer = self.visitor.change(self.action.operation, reference, key(said), self.body(said)).await?;
        let answer = if answer.status() == StatusCode::NO_CONTENT { Value::Null } else { written(answer)? };
        let (part, field) = self.action.redirect;
        let reference = JsonView(&answer).at(field).text();
        let page = if reference.is_empty() { href(&[part]) } else { href(&[part, &reference]) };
        Ok(to(&format!("{page}?done={}.{}", self.action.place[0], self.action.place[1])))
    }

    async fn rehearsed(&self, said: &FormData) -> Result<Value, Problem> {
        let reference = self.reference.unwrap_or_default();
        written(self.visitor.rehearse(self.action.operation, reference, self.body(said)).await?)
    }

    fn body(&self, said: &FormData) -> Option<Value> {
        let shapes = self.shapes();
        let present = if self.edits() { Some(&self.present) } else { None };
        let mut body = form_fields::body(&shapes, "", said, present);
        if let (Some(field), Some(reference)) = (self.action.reference_field, self.reference) {
            body.insert(field.to_owned(), reference.into());
        }
        // The version makes the edit fail if the object changed after the form was shown.
        if let Some(version) = body.get("version").is_none().then(|| field(said, "version")).flatten() {
            body.insert("version".to_owned(), form_fields::whole_number(version));
        }
        let takes_one = !shapes.is_empty() || self.action.reference_field.is_some();
        takes_one.then_some(Value::Object(body))
    }

    async fn form(&self, source: InitialValues<'_>, problem: Option<&Problem>) -> Result<String, Problem> {
        let shapes = self.shapes();
        let items = form_fields::items(&shapes, "", source, problem.map_or(&[][..], Problem::errors));
        let others = problem.map(|problem| form_fields::others(problem, &items)).unwrap_or_default();
        let form = Form {
            title: self.title(),
            tells: self.action.description,
            action: href(&self.place()),
            button: if self.action.has_dry_run() { "Preview" } else { self.action.button },
            key: source.said("form_key").unwrap_or_else(|| self.visitor.unique()),
            suggestions: self.suggestions(&shapes).await?,
            items,
            others,
        };
        Ok(self.page(billing_console::form(&form)))
    }

    fn preview(&self, effects: Value, said: &FormData) -> String {
        let said = said.iter().filter(|(name, _)| ![CONFIRMED, AGAIN, RESIZE].contains(&name.as_str())).cloned().collect();
        let preview = Preview {
            title: self.title(),
            tells: self.action.description,
            effects,
            action: href(&self.place()),
            button: self.action.button,
            said,
            has_form: !self.shapes().is_empty(),
            back: self.back(),
        };
        self.page(billing_console::preview(&preview))
    }

    fn page(&self, body: maud::Markup) -> String {
        let part = self.action.of.unwrap_or(self.action.redirect.0);
        render_page(self.visitor, self.title(), part, self.action.of.and(self.reference), body)
    }

    /// Loads the suggestions for reference fields.
    async fn suggestions(&self, shapes: &[BodyField]) -> Result<Vec<Suggestions>, Problem> {
        const NAMED: &[(&str, &str)] = &[
            ("customer_ref", "customers"),
            ("product_pricing_ref", "pricings"),
            ("usage_product_ref", "usage-products"),
            ("entity_ref", "entities"),
            ("billing_account_id", "bank-accounts"),
        ];
        let mut suggestions = Vec::new();
        for (field, part) in NAMED {
            let is_new = self.action.place == ["new", part];
            let Some(listing) = Listing::of(part).filter(|_| !is_new && names(shapes, field)) else { continue };
            let elements = some_of(self.visitor, listing, SUGGESTED).await?;
            let choices = JsonView(&elements).items().map(|one| (one.at(field).text(), listing.name_of(one))).collect();
            suggestions.push(Suggestions { field, choices });
        }
        Ok(suggestions)
    }
}

/// Returns whether a field with the name occurs at any depth.
fn names(shapes: &[BodyField], field: &str) -> bool {
    shapes.iter().any(|shape| match &shape.says {
        BodyFieldKind::One { .. } => shape.name == field,
        BodyFieldKind::Parts(parts) | BodyFieldKind::Several(parts) => names(parts, field),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_changes_state_by_an_operation_and_leads_to_a_part() {
        for action in FORM_ACTIONS {
            assert!(action.operation().is_ok_and(Operation::changes_state), "{}", action.operation);
            assert!(Listing::of(action.redirect.0).is_some(), "{}", action.redirect.0);
            let all: Vec<&str> = shapes(action.operation).iter().map(|shape| shape.name.as_str()).collect();
            for named in action.hidden_fields.iter().chain(&action.reference_field).filter(|named| **named != action.redirect.1) {
                assert!(all.contains(named), "{}: {named} in {all:?}", action.operation);
            }
        }
    }
}
