//! Forms that make, change and do things: what they ask for is what the OpenAPI document says of the operation's body, and what would
//! change documents is shown before it is done.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use billing_application::UseCase;
use billing_console::{AGAIN, At, CONFIRMED, Form, Listing, Preview, RESIZE, Suggestions, href};
use serde_json::Value;

use super::answers::written;
use super::described::{Says, Shape, shapes};
use super::filled::{self, Source};
use super::lists::some_of;
use super::made::around;
use super::reply::{belongs_beside, html, to, told};
use super::said::{Said, field, key};
use super::things;
use super::visitor::Visitor;
use crate::problem::Problem;
use crate::routes::by_path::{is_rehearsed, use_case};

/// How many things are suggested for a reference.
const SUGGESTED: &str = "200";

/// A form of the console.
struct Deed {
    /// Its place: `new` or `edit` a part, or `do` something.
    place: [&'static str; 2],
    /// The operation's path.
    path: &'static str,
    title: &'static str,
    tells: &'static str,
    button: &'static str,
    /// What is said when it is done.
    done: &'static str,
    /// What is there already and is changed, or what it is done with: a part of the console.
    of: Option<&'static str>,
    /// Fields that aren't asked for: those of the reference, and what forms have no use for.
    kept: &'static [&'static str],
    /// The field of the body that takes the reference.
    puts: Option<&'static str>,
    /// A field of the body that begins with what another field of the thing says.
    begins: Option<(&'static str, &'static str)>,
    /// Where it leads: a part of the console, and the field of the answer with the reference there; its list without one.
    leads: (&'static str, &'static str),
}

impl Deed {
    const fn new(place: [&'static str; 2], path: &'static str, title: &'static str) -> Self {
        Self {
            place,
            path,
            title,
            tells: "",
            button: "Make",
            done: "It was made.",
            of: None,
            kept: &[],
            puts: None,
            begins: None,
            leads: (place[1], ""),
        }
    }

    const fn edit(part: &'static str, path: &'static str, title: &'static str, reference: &'static [&'static str; 1]) -> Self {
        let leads = (part, reference[0]);
        Self {
            of: Some(part),
            kept: reference,
            leads,
            button: "Save",
            done: "It was changed.",
            ..Self::new(["edit", part], path, title)
        }
    }

    const fn act(id: &'static str, part: &'static str, path: &'static str, title: &'static str, button: &'static str) -> Self {
        Self { of: Some(part), button, done: "It was done.", ..Self::new(["do", id], path, title) }
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
        Self { begins: Some((field, from)), ..self }
    }

    const fn leading(self, part: &'static str, reference: &'static str) -> Self {
        Self { leads: (part, reference), ..self }
    }

    const fn telling(self, tells: &'static str) -> Self {
        Self { tells, ..self }
    }

    fn use_case(&self) -> Result<UseCase, Problem> {
        use_case(self.path).ok_or_else(Problem::unknown_route)
    }
}

/// Every form.
const DEEDS: &[Deed] = &[
    Deed::new(["new", "customers"], "/api/customers/", "New customer").leading("customers", "customer_ref"),
    Deed::edit("customers", "/api/customers/edit/{customer_ref}", "Edit customer", &["customer_ref"]),
    Deed::new(["new", "usage-products"], "/api/usage/products/", "New usage product")
        .leading("usage-products", "usage_product_ref"),
    Deed::edit("usage-products", "/api/usage/products/edit/{usage_product_ref}", "Edit usage product", &["usage_product_ref"]),
    Deed::new(["new", "entities"], "/api/entities/", "New entity").leading("entities", "entity_ref"),
    Deed::edit("entities", "/api/entities/edit/{entity_ref}", "Edit entity", &["entity_ref"]),
    Deed::new(["new", "bank-accounts"], "/api/bank_accounts/", "New bank account").leading("bank-accounts", "billing_account_id"),
    Deed::edit("bank-accounts", "/api/bank_accounts/edit/{billing_account_id}", "Edit bank account", &["billing_account_id"]),
    Deed::new(["new", "pricings"], "/api/pricings/", "New pricing").leading("pricings", "product_pricing_ref"),
    Deed::edit("pricings", "/api/pricings/edit/{product_pricing_ref}", "Edit pricing", &["product_pricing_ref"])
        .telling("Contracts keep what they agreed on: an edit of a contract takes up the new prices."),
    Deed::new(["new", "contracts"], "/api/contracts/", "New contract").leading("contracts", "contract_ref"),
    Deed {
        kept: &["customer_ref"],
        ..Deed::edit("contracts", "/api/contracts/edit/{contract_ref}", "Edit contract", &["contract_ref"])
    }
    .telling("All products that it is to have are listed; what is said of each holds from the day that is named."),
    Deed::act("cancel", "contracts", "/api/contracts/cancel/{contract_ref}", "Cancel the contract", "Cancel it")
        .leading("contracts", "contract_ref"),
    Deed::act("resume", "contracts", "/api/contracts/resume/{contract_ref}", "Take the cancel back", "Resume")
        .leading("contracts", "contract_ref"),
    Deed::act("quantity", "contracts", "/api/contracts/quantities/{contract_ref}", "Agree on another quantity", "Agree")
        .leading("contracts", "contract_ref"),
    Deed {
        kept: &["contract_ref", "charge_ref"],
        puts: Some("contract_ref"),
        ..Deed::act("charge", "contracts", "/api/charges/", "Charge or credit an amount", "Record")
    }
    .leading("charges", "charge_ref")
    .telling("A unit price below zero makes a credit note."),
    Deed::edit("charges", "/api/charges/edit/{charge_ref}", "Edit charge", &["charge_ref"]),
    Deed::act("delete-charge", "charges", "/api/charges/{charge_ref}", "Delete the charge", "Delete").leading("charges", ""),
    Deed::on_document("issue", "/api/documents/issue/{document_ref}", "Issue now", "Issue")
        .telling("It becomes final. What is reported for it later is billed by a debit or a credit."),
    Deed::on_document("void", "/api/documents/void/{document_ref}", "Void", "Void")
        .telling("It counts no more, and what it billed is billed again where that is still agreed. It can't be undone."),
    Deed::on_document("pay", "/api/documents/payments/{document_ref}", "Record a payment", "Record")
        .beginning("amount", "amount_due"),
    Deed::on_document("write-off", "/api/documents/write-off/{document_ref}", "Give up on what is left to pay", "Write off")
        .telling("With `undo` what was given up on is owed again."),
    Deed::on_document("refund", "/api/documents/refund/{source_ref}", "Pay out what isn't applied", "Refund")
        .beginning("amount", "unapplied_amount"),
    Deed::on_document("apply", "/api/documents/apply/{source_ref}", "Apply it to a document", "Apply")
        .beginning("amount", "unapplied_amount"),
    Deed::on_money("refund-payment", "/api/documents/refund/{source_ref}", "Pay back what is left of a payment", "Refund"),
    Deed::on_money(
        "apply-payment",
        "/api/documents/apply/{source_ref}",
        "Apply what is left of a payment to a document",
        "Apply",
    ),
    Deed::on_money("unapply", "/api/documents/unapply/{application_ref}", "Take an application back", "Take it back"),
    Deed::on_money("reverse", "/api/documents/payments/reverse/{payment_ref}", "Take a payment back", "Reverse"),
    Deed {
        kept: &["event_ref", "customer_ref", "usage_product_ref"],
        puts: Some("event_ref"),
        ..Deed::edit("events", "/api/usage/event/update", "Edit usage event", &["event_ref"])
    },
    Deed::act("delete-event", "events", "/api/usage/event/{event_ref}", "Delete the usage event", "Delete").leading("events", ""),
];

/// Whether there is a form at a place.
pub(super) fn has(kind: &str, what: &str) -> bool {
    deed(kind, what).is_ok()
}

/// Whether there is a form at a place that somebody may send.
pub(super) fn may(visitor: &Visitor, kind: &str, what: &str) -> bool {
    deed(kind, what).and_then(Deed::use_case).is_ok_and(|use_case| visitor.may(use_case))
}

fn deed(kind: &str, what: &str) -> Result<&'static Deed, Problem> {
    DEEDS.iter().find(|deed| deed.place == [kind, what]).ok_or_else(Problem::unknown_route)
}

/// What is said after something was done.
pub(super) fn done(place: &str) -> Option<&'static str> {
    let (kind, what) = place.split_once('.')?;
    deed(kind, what).ok().map(|deed| deed.done)
}

/// A form, and what it is about.
pub(super) struct Asked<'a> {
    visitor: &'a Visitor,
    deed: &'static Deed,
    reference: Option<&'a str>,
    /// What is there already.
    present: Value,
}

impl<'a> Asked<'a> {
    /// The form at a place.
    ///
    /// # Errors
    /// Where there is no such form, or nothing that it is about, and where the visitor may not send it.
    pub(super) async fn at(visitor: &'a Visitor, kind: &str, what: &str, reference: Option<&'a str>) -> Result<Self, Problem> {
        let deed = deed(kind, what)?;
        // What is made has no reference yet, and anything else has one.
        if reference.is_none() != (kind == "new") {
            return Err(Problem::unknown_route());
        }
        visitor.allow(deed.use_case()?)?;
        let present = match (deed.of, reference) {
            (Some(part), Some(reference)) => things::read(visitor, part, reference).await?,
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
    fn shapes(&self) -> Vec<Shape> {
        let kept = |shape: &&Shape| !self.deed.kept.contains(&shape.name.as_str()) && shape.name != "dry_run";
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
            _ => href(&[self.deed.leads.0]),
        }
    }

    /// The page of the form, or of what is done where nothing has to be said.
    ///
    /// # Errors
    /// What keeps it from being shown.
    pub(super) async fn show(&self) -> Result<String, Problem> {
        if self.shapes().is_empty() {
            let effects = self.rehearsed(&Said::new()).await?;
            return Ok(self.preview(effects, &vec![("form_key".to_owned(), self.visitor.unique())]));
        }
        let begins = self.deed.begins.map(|(field, from)| {
            let mut said = serde_json::Map::new();
            said.insert(field.to_owned(), self.present.get(from).cloned().unwrap_or_default());
            Value::Object(said)
        });
        let source = match &begins {
            Some(begins) => Source::Present(begins),
            None if self.edits() => Source::Present(&self.present),
            None => Source::Nothing,
        };
        self.form(source, None).await
    }

    /// What becomes of what the form says.
    ///
    /// # Errors
    /// What has no place beside the form.
    pub(super) async fn take(&self, said: &Said) -> Result<HttpResponse, Problem> {
        if let Some(wanted) = field(said, RESIZE) {
            return self.form(Source::Said(&filled::resized(said, wanted)), None).await.map(html);
        }
        if field(said, AGAIN).is_some() {
            return self.form(Source::Said(said), None).await.map(html);
        }
        let refused = match self.carry_out(said).await {
            Ok(answer) => return Ok(answer),
            Err(problem) => problem,
        };
        if !belongs_beside(&refused) || self.shapes().is_empty() {
            return Err(refused);
        }
        let page = self.form(Source::Said(said), Some(&refused)).await?;
        Ok(told(refused, page))
    }

    async fn carry_out(&self, said: &Said) -> Result<HttpResponse, Problem> {
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
        let (part, field) = self.deed.leads;
        let reference = At(&answer).at(field).text();
        let page = if reference.is_empty() { href(&[part]) } else { href(&[part, &reference]) };
        Ok(to(&format!("{page}?done={}.{}", self.deed.place[0], self.deed.place[1])))
    }

    async fn rehearsed(&self, said: &Said) -> Result<Value, Problem> {
        written(self.visitor.rehearse(&self.path(), self.body(said)).await?).await
    }

    fn body(&self, said: &Said) -> Option<Value> {
        let shapes = self.shapes();
        let present = if self.edits() { Some(&self.present) } else { None };
        let mut body = filled::body(&shapes, "", said, present);
        if let (Some(field), Some(reference)) = (self.deed.puts, self.reference) {
            body.insert(field.to_owned(), reference.into());
        }
        // What is edited is what was seen.
        if let Some(version) = body.get("version").is_none().then(|| field(said, "version")).flatten() {
            body.insert("version".to_owned(), filled::whole_number(version));
        }
        let takes_one = !shapes.is_empty() || self.deed.puts.is_some();
        takes_one.then_some(Value::Object(body))
    }

    async fn form(&self, source: Source<'_>, problem: Option<&Problem>) -> Result<String, Problem> {
        let shapes = self.shapes();
        let items = filled::items(&shapes, "", source, problem.map_or(&[][..], Problem::errors));
        let others = problem.map(|problem| filled::others(problem, &items)).unwrap_or_default();
        let form = Form {
            title: self.title(),
            tells: self.deed.tells,
            action: href(&self.place()),
            button: if is_rehearsed(&self.path()) { "Go on" } else { self.deed.button },
            key: source.said("form_key").unwrap_or_else(|| self.visitor.unique()),
            suggestions: self.suggestions(&shapes).await?,
            items,
            others,
        };
        Ok(self.page(billing_console::form(&form)))
    }

    fn preview(&self, effects: Value, said: &Said) -> String {
        let said = said.iter().filter(|(name, _)| ![CONFIRMED, AGAIN, RESIZE].contains(&name.as_str())).cloned().collect();
        let preview = Preview {
            title: self.title(),
            tells: self.deed.tells,
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
        let part = self.deed.of.unwrap_or(self.deed.leads.0);
        around(self.visitor, self.title(), part, self.deed.of.and(self.reference), body)
    }

    /// What there is of what its fields name.
    async fn suggestions(&self, shapes: &[Shape]) -> Result<Vec<Suggestions>, Problem> {
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
            let choices = At(&elements).items().map(|one| (one.at(field).text(), listing.name_of(one))).collect();
            suggestions.push(Suggestions { field, choices });
        }
        Ok(suggestions)
    }
}

/// Whether a field of a name is asked for anywhere.
fn names(shapes: &[Shape], field: &str) -> bool {
    shapes.iter().any(|shape| match &shape.says {
        Says::One { .. } => shape.name == field,
        Says::Parts(parts) | Says::Several(parts) => names(parts, field),
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
            assert!(Listing::of(deed.leads.0).is_some(), "{}", deed.leads.0);
            let all: Vec<&str> = shapes(deed.path).iter().map(|shape| shape.name.as_str()).collect();
            for named in deed.kept.iter().chain(&deed.puts).filter(|named| **named != deed.leads.1) {
                assert!(all.contains(named), "{}: {named} in {all:?}", deed.path);
            }
        }
    }
}
