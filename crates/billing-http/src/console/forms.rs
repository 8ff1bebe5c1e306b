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
use crate::problem::Problem;
use crate::routes::dry_run::{is_rehearsed, use_case};

/// Maximum number of suggestions for a reference field.
const SUGGESTED: &str = "200";

/// A form of the console.
struct FormAction {
    /// Place of the form: `new` or `edit` and a part of the console, or `do` and an action.
    place: [&'static str; 2],
    /// Path of the operation.
    path: &'static str,
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
    const fn new(place: [&'static str; 2], path: &'static str, title: &'static str) -> Self {
        Self {
            place,
            path,
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

    const fn edit(part: &'static str, path: &'static str, title: &'static str, reference: &'static [&'static str; 1]) -> Self {
        let leads = (part, reference[0]);
        Self {
            of: Some(part),
            hidden_fields: reference,
            redirect: leads,
            button: "Save",
            ..Self::new(["edit", part], path, title)
        }
    }

    const fn act(id: &'static str, part: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: Some(part), button, ..Self::new(["do", id], path, title) }
    }

    /// Creates an action on a document that leads to a document.
    const fn on_document(id: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self::act(id, "documents", path, title, button).leading("documents", "document_ref")
    }

    /// Creates an action on a payment or application that leads to a document, because these objects have no page of
    /// their own.
    const fn on_money(id: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: None, ..Self::on_document(id, path, title, button) }
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

    fn use_case(&self) -> Result<UseCase, Problem> {
        use_case(self.path).ok_or_else(Problem::unknown_route)
    }
}

/// All forms of the console.
const DEEDS: &[FormAction] = &[
    FormAction::new(["new", "customers"], "/api/customers/", "New customer")
        .leading("customers", "customer_ref")
        .confirming("Customer created."),
    FormAction::edit("customers", "/api/customers/edit/{customer_ref}", "Edit customer", &["customer_ref"])
        .confirming("Customer updated."),
    FormAction::new(["new", "usage-products"], "/api/usage/products/", "New usage product")
        .leading("usage-products", "usage_product_ref")
        .confirming("Usage product created."),
    FormAction::edit(
        "usage-products",
        "/api/usage/products/edit/{usage_product_ref}",
        "Edit usage product",
        &["usage_product_ref"],
    )
    .confirming("Usage product updated."),
    FormAction::new(["new", "entities"], "/api/entities/", "New entity")
        .leading("entities", "entity_ref")
        .confirming("Entity created."),
    FormAction::edit("entities", "/api/entities/edit/{entity_ref}", "Edit entity", &["entity_ref"]).confirming("Entity updated."),
    FormAction::new(["new", "bank-accounts"], "/api/bank_accounts/", "New bank account")
        .leading("bank-accounts", "billing_account_id")
        .confirming("Bank account created."),
    FormAction::edit(
        "bank-accounts",
        "/api/bank_accounts/edit/{billing_account_id}",
        "Edit bank account",
        &["billing_account_id"],
    )
    .confirming("Bank account updated."),
    FormAction::new(["new", "pricings"], "/api/pricings/", "New pricing")
        .leading("pricings", "product_pricing_ref")
        .confirming("Pricing created."),
    FormAction::edit("pricings", "/api/pricings/edit/{product_pricing_ref}", "Edit pricing", &["product_pricing_ref"])
        .telling("Existing contracts keep their prices. To apply the new prices, edit the contract and set Reprice to yes.")
        .confirming("Pricing updated."),
    FormAction::new(["new", "contracts"], "/api/contracts/", "New contract")
        .leading("contracts", "contract_ref")
        .confirming("Contract created."),
    FormAction {
        hidden_fields: &["customer_ref"],
        ..FormAction::edit("contracts", "/api/contracts/edit/{contract_ref}", "Edit contract", &["contract_ref"])
    }
    .telling("List all products that the contract keeps. By default, changes apply from the next period of each product.")
    .confirming("Contract updated."),
    FormAction::act("cancel", "contracts", "/api/contracts/cancel/{contract_ref}", "Cancel contract", "Cancel contract")
        .leading("contracts", "contract_ref")
        .confirming("Cancellation recorded."),
    FormAction::act("resume", "contracts", "/api/contracts/resume/{contract_ref}", "Resume contract", "Resume contract")
        .leading("contracts", "contract_ref")
        .confirming("Contract resumed."),
    FormAction::act("quantity", "contracts", "/api/contracts/quantities/{contract_ref}", "Change quantity", "Change quantity")
        .leading("contracts", "contract_ref")
        .confirming("Quantity changed."),
    FormAction {
        hidden_fields: &["contract_ref", "charge_ref"],
        reference_field: Some("contract_ref"),
        ..FormAction::act("charge", "contracts", "/api/charges/", "Add charge or credit", "Add charge")
    }
    .leading("charges", "charge_ref")
    .telling("A negative unit price creates a credit.")
    .confirming("Charge created."),
    FormAction::edit("charges", "/api/charges/edit/{charge_ref}", "Edit charge", &["charge_ref"]).confirming("Charge updated."),
    FormAction::act("delete-charge", "charges", "/api/charges/{charge_ref}", "Delete charge", "Delete charge")
        .leading("charges", "")
        .confirming("Charge deleted."),
    FormAction::on_document("issue", "/api/documents/issue/{document_ref}", "Issue document", "Issue document")
        .telling("The document becomes final. Usage reported for it later is billed by a debit or a credit.")
        .confirming("Document issued."),
    FormAction::on_document("void", "/api/documents/void/{document_ref}", "Void document", "Void document")
        .telling(
            "The document is no longer in force. Its usage and fees are billed again if the contract still includes them. \
             Voiding cannot be undone.",
        )
        .confirming("Document voided."),
    FormAction::on_document("pay", "/api/documents/payments/{document_ref}", "Record payment", "Record payment")
        .beginning("amount", "amount_due")
        .confirming("Payment recorded."),
    FormAction::on_document(
        "write-off",
        "/api/documents/write-off/{document_ref}",
        "Write off the amount due",
        "Write off amount",
    )
    .telling("Set Undo to yes to reverse a write-off. The amount becomes due again.")
    .confirming("Write-off saved."),
    FormAction::on_document("refund", "/api/documents/refund/{source_ref}", "Refund the unapplied amount", "Refund amount")
        .beginning("amount", "unapplied_amount")
        .confirming("Refund recorded."),
    FormAction::on_document(
        "apply",
        "/api/documents/apply/{source_ref}",
        "Apply the unapplied amount to a document",
        "Apply amount",
    )
    .beginning("amount", "unapplied_amount")
    .confirming("Amount applied."),
    FormAction::on_money(
        "refund-payment",
        "/api/documents/refund/{source_ref}",
        "Refund the unapplied amount of a payment",
        "Refund amount",
    )
    .confirming("Refund recorded."),
    FormAction::on_money(
        "apply-payment",
        "/api/documents/apply/{source_ref}",
        "Apply the unapplied amount of a payment to a document",
        "Apply amount",
    )
    .confirming("Payment applied."),
    FormAction::on_money("unapply", "/api/documents/unapply/{application_ref}", "Reverse application", "Reverse application")
        .confirming("Application reversed."),
    FormAction::on_money("reverse", "/api/documents/payments/reverse/{payment_ref}", "Reverse payment", "Reverse payment")
        .confirming("Payment reversed."),
    FormAction {
        hidden_fields: &["event_ref", "customer_ref", "usage_product_ref"],
        reference_field: Some("event_ref"),
        ..FormAction::edit("events", "/api/usage/event/update", "Edit usage event", &["event_ref"])
    }
    .confirming("Usage event updated."),
    FormAction::act("delete-event", "events", "/api/usage/event/{event_ref}", "Delete usage event", "Delete usage event")
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
    DEEDS.iter().find(|deed| deed.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

/// Returns the notice after a successful action.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let (kind, what) = place.split_once('.')?;
    form_action(kind, what).ok().map(|deed| deed.success_message)
}

/// A form and the object it concerns.
pub(super) struct FormPage<'a> {
    visitor: &'a SessionUser,
    deed: &'static FormAction,
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
        let deed = form_action(kind, what)?;
        // New objects have no reference yet; all other forms require one.
        if reference.is_none() != (kind == "new") {
            return Err(Problem::unknown_route());
        }
        visitor.allow(deed.use_case()?)?;
        let present = match (deed.of, reference) {
            (Some(part), Some(reference)) => resources::read(visitor, part, reference).await?,
            _ => Value::Null,
        };
        Ok(Self { visitor, deed, reference, present })
    }

    fn place(&self) -> Vec<&'a str> {
        self.deed.place.into_iter().chain(self.reference).collect()
    }

    fn path(&self) -> String {
        match (self.deed.path.split_once('{'), self.reference) {
            (Some((below, _)), Some(reference)) => format!("{below}{reference}"),
            _ => self.deed.path.to_owned(),
        }
    }

    fn title(&self) -> String {
        match (self.deed.place[0], self.reference) {
            ("edit", Some(reference)) => format!("{} {reference}", self.deed.title),
            _ => self.deed.title.to_owned(),
        }
    }

    /// Returns the fields of the form.
    fn shapes(&self) -> Vec<BodyField> {
        let kept = |shape: &&BodyField| !self.deed.hidden_fields.contains(&shape.name.as_str()) && shape.name != "dry_run";
        shapes(self.deed.path).iter().filter(kept).cloned().collect()
    }

    /// Returns whether the form edits an existing object, so that unchanged fields keep their values.
    fn edits(&self) -> bool {
        self.deed.place[0] == "edit"
    }

    /// Returns the page to return to.
    fn back(&self) -> String {
        match (self.deed.of, self.reference) {
            (Some(part), Some(reference)) => href(&[part, reference]),
            _ => href(&[self.deed.redirect.0]),
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
        let begins = self.deed.prefill.map(|(field, from)| {
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
        let path = self.path();
        if is_rehearsed(&path) && field(said, CONFIRMED).is_none() {
            let effects = self.rehearsed(said).await?;
            if billing_console::is_seen(&effects) || self.shapes().is_empty() {
                let page = self.preview(effects, said);
                return Ok(html(page));
            }
        }
        // The key prevents a second execution when the form is sent twice.
        let answer = self.visitor.carry_out(&path, key(said, path.trim_end_matches('/')), self.body(said)).await?;
        let answer = if answer.status() == StatusCode::NO_CONTENT { Value::Null } else { written(answer).await? };
        let (part, field) = self.deed.redirect;
        let reference = JsonView(&answer).at(field).text();
        let page = if reference.is_empty() { href(&[part]) } else { href(&[part, &reference]) };
        Ok(to(&format!("{page}?done={}.{}", self.deed.place[0], self.deed.place[1])))
    }

    async fn rehearsed(&self, said: &FormData) -> Result<Value, Problem> {
        written(self.visitor.rehearse(&self.path(), self.body(said)).await?).await
    }

    fn body(&self, said: &FormData) -> Option<Value> {
        let shapes = self.shapes();
        let present = if self.edits() { Some(&self.present) } else { None };
        let mut body = form_fields::body(&shapes, "", said, present);
        if let (Some(field), Some(reference)) = (self.deed.reference_field, self.reference) {
            body.insert(field.to_owned(), reference.into());
        }
        // The version makes the edit fail if the object changed after the form was shown.
        if let Some(version) = body.get("version").is_none().then(|| field(said, "version")).flatten() {
            body.insert("version".to_owned(), form_fields::whole_number(version));
        }
        let takes_one = !shapes.is_empty() || self.deed.reference_field.is_some();
        takes_one.then_some(Value::Object(body))
    }

    async fn form(&self, source: InitialValues<'_>, problem: Option<&Problem>) -> Result<String, Problem> {
        let shapes = self.shapes();
        let items = form_fields::items(&shapes, "", source, problem.map_or(&[][..], Problem::errors));
        let others = problem.map(|problem| form_fields::others(problem, &items)).unwrap_or_default();
        let form = Form {
            title: self.title(),
            tells: self.deed.description,
            action: href(&self.place()),
            button: if is_rehearsed(&self.path()) { "Preview" } else { self.deed.button },
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
            tells: self.deed.description,
            effects,
            action: href(&self.place()),
            button: self.deed.button,
            said,
            has_form: !self.shapes().is_empty(),
            back: self.back(),
        };
        self.page(billing_console::preview(&preview))
    }

    fn page(&self, body: maud::Markup) -> String {
        let part = self.deed.of.unwrap_or(self.deed.redirect.0);
        render_page(self.visitor, self.title(), part, self.deed.of.and(self.reference), body)
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
            let is_new = self.deed.place == ["new", part];
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
    fn every_form_is_of_an_operation_and_leads_to_a_part() {
        for deed in DEEDS {
            let is_there = crate::operations::OPERATIONS.iter().any(|operation| operation.path == deed.path);
            assert!(is_there, "{}", deed.path);
            assert!(Listing::of(deed.redirect.0).is_some(), "{}", deed.redirect.0);
            let all: Vec<&str> = shapes(deed.path).iter().map(|shape| shape.name.as_str()).collect();
            for named in deed.hidden_fields.iter().chain(&deed.reference_field).filter(|named| **named != deed.redirect.1) {
                assert!(all.contains(named), "{}: {named} in {all:?}", deed.path);
            }
        }
    }
}
