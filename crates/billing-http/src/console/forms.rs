//! Forms that make, change and do things: what they ask for is what the OpenAPI document says of the operation's body, and what would
//! change documents is shown before it is done.

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

/// How many things are suggested for a reference.
const SUGGESTED: &str = "200";

/// A form of the console.
struct FormAction {
    /// Its place: `new` or `edit` a part, or `do` something.
    place: [&'static str; 2],
    /// The operation's path.
    path: &'static str,
    title: &'static str,
    description: &'static str,
    button: &'static str,
    /// What is said when it is done.
    success_message: &'static str,
    /// What is there already and is changed, or what it is done with: a part of the console.
    of: Option<&'static str>,
    /// Fields that aren't asked for: those of the reference, and what forms have no use for.
    hidden_fields: &'static [&'static str],
    /// The field of the body that takes the reference.
    reference_field: Option<&'static str>,
    /// A field of the body that begins with what another field of the thing says.
    prefill: Option<(&'static str, &'static str)>,
    /// Where it leads: a part of the console, and the field of the answer with the reference there; its list without one.
    redirect: (&'static str, &'static str),
}

impl FormAction {
    const fn new(place: [&'static str; 2], path: &'static str, title: &'static str) -> Self {
        Self {
            place,
            path,
            title,
            description: "",
            button: "Make",
            success_message: "It was made.",
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
            success_message: "It was changed.",
            ..Self::new(["edit", part], path, title)
        }
    }

    const fn act(id: &'static str, part: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: Some(part), button, success_message: "It was done.", ..Self::new(["do", id], path, title) }
    }

    /// What is done with a document, and leads to one.
    const fn on_document(id: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self::act(id, "documents", path, title, button).leading("documents", "document_ref")
    }

    /// What is done with a payment or an application, which have no page of their own, and leads to a document.
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

    fn use_case(&self) -> Result<UseCase, Problem> {
        use_case(self.path).ok_or_else(Problem::unknown_route)
    }
}

/// Every form.
const DEEDS: &[FormAction] = &[
    FormAction::new(["new", "customers"], "/api/customers/", "New customer").leading("customers", "customer_ref"),
    FormAction::edit("customers", "/api/customers/edit/{customer_ref}", "Edit customer", &["customer_ref"]),
    FormAction::new(["new", "usage-products"], "/api/usage/products/", "New usage product")
        .leading("usage-products", "usage_product_ref"),
    FormAction::edit(
        "usage-products",
        "/api/usage/products/edit/{usage_product_ref}",
        "Edit usage product",
        &["usage_product_ref"],
    ),
    FormAction::new(["new", "entities"], "/api/entities/", "New entity").leading("entities", "entity_ref"),
    FormAction::edit("entities", "/api/entities/edit/{entity_ref}", "Edit entity", &["entity_ref"]),
    FormAction::new(["new", "bank-accounts"], "/api/bank_accounts/", "New bank account")
        .leading("bank-accounts", "billing_account_id"),
    FormAction::edit(
        "bank-accounts",
        "/api/bank_accounts/edit/{billing_account_id}",
        "Edit bank account",
        &["billing_account_id"],
    ),
    FormAction::new(["new", "pricings"], "/api/pricings/", "New pricing").leading("pricings", "product_pricing_ref"),
    FormAction::edit("pricings", "/api/pricings/edit/{product_pricing_ref}", "Edit pricing", &["product_pricing_ref"])
        .telling("Contracts keep what they agreed on: an edit of a contract takes up the new prices."),
    FormAction::new(["new", "contracts"], "/api/contracts/", "New contract").leading("contracts", "contract_ref"),
    FormAction {
        hidden_fields: &["customer_ref"],
        ..FormAction::edit("contracts", "/api/contracts/edit/{contract_ref}", "Edit contract", &["contract_ref"])
    }
    .telling("All products that it is to have are listed; what is said of each holds from the day that is named."),
    FormAction::act("cancel", "contracts", "/api/contracts/cancel/{contract_ref}", "Cancel the contract", "Cancel it")
        .leading("contracts", "contract_ref"),
    FormAction::act("resume", "contracts", "/api/contracts/resume/{contract_ref}", "Take the cancel back", "Resume")
        .leading("contracts", "contract_ref"),
    FormAction::act("quantity", "contracts", "/api/contracts/quantities/{contract_ref}", "Agree on another quantity", "Agree")
        .leading("contracts", "contract_ref"),
    FormAction {
        hidden_fields: &["contract_ref", "charge_ref"],
        reference_field: Some("contract_ref"),
        ..FormAction::act("charge", "contracts", "/api/charges/", "Charge or credit an amount", "Record")
    }
    .leading("charges", "charge_ref")
    .telling("A unit price below zero makes a credit note."),
    FormAction::edit("charges", "/api/charges/edit/{charge_ref}", "Edit charge", &["charge_ref"]),
    FormAction::act("delete-charge", "charges", "/api/charges/{charge_ref}", "Delete the charge", "Delete")
        .leading("charges", ""),
    FormAction::on_document("issue", "/api/documents/issue/{document_ref}", "Issue now", "Issue")
        .telling("It becomes final. What is reported for it later is billed by a debit or a credit."),
    FormAction::on_document("void", "/api/documents/void/{document_ref}", "Void", "Void")
        .telling("It counts no more, and what it billed is billed again where that is still agreed. It can't be undone."),
    FormAction::on_document("pay", "/api/documents/payments/{document_ref}", "Record a payment", "Record")
        .beginning("amount", "amount_due"),
    FormAction::on_document(
        "write-off",
        "/api/documents/write-off/{document_ref}",
        "Give up on what is left to pay",
        "Write off",
    )
    .telling("With `undo` what was given up on is owed again."),
    FormAction::on_document("refund", "/api/documents/refund/{source_ref}", "Pay out what isn't applied", "Refund")
        .beginning("amount", "unapplied_amount"),
    FormAction::on_document("apply", "/api/documents/apply/{source_ref}", "Apply it to a document", "Apply")
        .beginning("amount", "unapplied_amount"),
    FormAction::on_money("refund-payment", "/api/documents/refund/{source_ref}", "Pay back what is left of a payment", "Refund"),
    FormAction::on_money(
        "apply-payment",
        "/api/documents/apply/{source_ref}",
        "Apply what is left of a payment to a document",
        "Apply",
    ),
    FormAction::on_money("unapply", "/api/documents/unapply/{application_ref}", "Take an application back", "Take it back"),
    FormAction::on_money("reverse", "/api/documents/payments/reverse/{payment_ref}", "Take a payment back", "Reverse"),
    FormAction {
        hidden_fields: &["event_ref", "customer_ref", "usage_product_ref"],
        reference_field: Some("event_ref"),
        ..FormAction::edit("events", "/api/usage/event/update", "Edit usage event", &["event_ref"])
    },
    FormAction::act("delete-event", "events", "/api/usage/event/{event_ref}", "Delete the usage event", "Delete")
        .leading("events", ""),
];

/// Whether there is a form at a place.
pub(super) fn has(kind: &str, what: &str) -> bool {
    form_action(kind, what).is_ok()
}

/// Whether there is a form at a place that somebody may send.
pub(super) fn may(visitor: &SessionUser, kind: &str, what: &str) -> bool {
    form_action(kind, what).and_then(FormAction::use_case).is_ok_and(|use_case| visitor.may(use_case))
}

fn form_action(kind: &str, what: &str) -> Result<&'static FormAction, Problem> {
    DEEDS.iter().find(|deed| deed.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

/// What is said after something was done.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let (kind, what) = place.split_once('.')?;
    form_action(kind, what).ok().map(|deed| deed.success_message)
}

/// A form, and what it is about.
pub(super) struct FormPage<'a> {
    visitor: &'a SessionUser,
    deed: &'static FormAction,
    reference: Option<&'a str>,
    /// What is there already.
    present: Value,
}

impl<'a> FormPage<'a> {
    /// The form at a place.
    ///
    /// # Errors
    /// Where there is no such form, or nothing that it is about, and where the visitor may not send it.
    pub(super) async fn at(
        visitor: &'a SessionUser,
        kind: &str,
        what: &str,
        reference: Option<&'a str>,
    ) -> Result<Self, Problem> {
        let deed = form_action(kind, what)?;
        // What is made has no reference yet, and anything else has one.
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

    /// What it asks for.
    fn shapes(&self) -> Vec<BodyField> {
        let kept = |shape: &&BodyField| !self.deed.hidden_fields.contains(&shape.name.as_str()) && shape.name != "dry_run";
        shapes(self.deed.path).iter().filter(kept).cloned().collect()
    }

    /// Whether it changes what is there: then what isn't said otherwise stays.
    fn edits(&self) -> bool {
        self.deed.place[0] == "edit"
    }

    /// Where one was before.
    fn back(&self) -> String {
        match (self.deed.of, self.reference) {
            (Some(part), Some(reference)) => href(&[part, reference]),
            _ => href(&[self.deed.redirect.0]),
        }
    }

    /// The page of the form, or of what is done where nothing has to be said.
    ///
    /// # Errors
    /// What keeps it from being shown.
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

    /// What becomes of what the form says.
    ///
    /// # Errors
    /// What has no place beside the form.
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
        // A form that is sent twice does it once.
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
        // What is edited is what was seen.
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
            button: if is_rehearsed(&self.path()) { "Go on" } else { self.deed.button },
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

    /// What there is of what its fields name.
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

/// Whether a field of a name is asked for anywhere.
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
