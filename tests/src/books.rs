//! What is done with documents and events, and how they are read.

use serde_json::{Value, json};

use crate::{Answer, Client};

/// What later documents and payments may change of an issued document.
const DERIVED: [&str; 12] = [
    "state",
    "due_date",
    "paid_date",
    "paid_amount",
    "credits_amount",
    "written_off_amount",
    "amount_due",
    "unapplied_amount",
    "applications",
    "write_offs",
    "overdue",
    "related_documents",
];

/// The path of an operation on what a reference names.
#[track_caller]
fn path(operation: &str, reference: &Value) -> String {
    format!("{operation}/{}", reference.as_str().unwrap_or_else(|| panic!("{reference} is no reference")))
}

/// A document.
///
/// # Panics
/// When it isn't there.
#[track_caller]
pub fn document(client: &Client, document_ref: &Value) -> Value {
    client.get(&path("/api/documents", document_ref)).ok()
}

/// The document with a number.
///
/// # Panics
/// When it isn't there.
#[track_caller]
pub fn numbered(client: &Client, number: &str) -> Value {
    let documents = crate::catalog::documents(client);
    let found = documents.iter().find(|document| document["document_number"] == number);
    found.unwrap_or_else(|| panic!("no {number} in {}", Value::Array(documents.clone()))).clone()
}

/// Reports an event.
///
/// # Panics
/// When it is refused.
#[track_caller]
pub fn report(client: &Client, event: &Value) -> Value {
    client.post("/api/usage/event", event).ok()
}

/// An event as it is stored.
///
/// # Panics
/// When it isn't there.
#[track_caller]
pub fn event(client: &Client, event_ref: &Value) -> Value {
    client.get(&path("/api/usage/event", event_ref)).ok()
}

/// Changes fields of an event.
pub fn update(client: &Client, event_ref: &Value, mut fields: Value) -> Answer {
    fields["event_ref"] = event_ref.clone();
    client.post("/api/usage/event/update", &fields)
}

/// Deletes an event.
pub fn delete(client: &Client, event_ref: &Value) -> Answer {
    client.delete(&path("/api/usage/event", event_ref))
}

/// Every revision of an event.
///
/// # Panics
/// When it isn't there.
#[track_caller]
pub fn history(client: &Client, event_ref: &Value) -> Vec<Value> {
    let history = client.get(&path("/api/usage/event/history", event_ref)).ok();
    history.as_array().expect("a list").clone()
}

/// Issues what is due, and answers what was.
///
/// # Panics
/// When a contract fails.
#[track_caller]
pub fn run(client: &Client) -> Vec<Value> {
    let report = client.post("/api/billing/run", &json!({})).ok();
    assert_eq!(report["failed"], json!([]));
    report["issued"].as_array().expect("a list").clone()
}

/// Issues a draft.
pub fn issue(client: &Client, document_ref: &Value) -> Answer {
    client.post_nothing(&path("/api/documents/issue", document_ref))
}

/// Puts an issued document out of force.
pub fn void(client: &Client, document_ref: &Value) -> Answer {
    client.post_nothing(&path("/api/documents/void", document_ref))
}

/// Records a payment.
pub fn pay(client: &Client, document_ref: &Value, payment: &Value) -> Answer {
    client.post(&path("/api/documents/payments", document_ref), payment)
}

/// Edits a contract.
pub fn edit(client: &Client, contract_ref: &str, body: &Value) -> Answer {
    client.post(&format!("/api/contracts/edit/{contract_ref}"), body)
}

/// Cancels a contract: at the end of its period, or now.
pub fn cancel(client: &Client, contract_ref: &str, now: bool) -> Answer {
    client.post(&format!("/api/contracts/cancel/{contract_ref}"), &json!({"include_current_invoice": now}))
}

/// What a contract bills in its current or its next period.
///
/// # Panics
/// When there is no such contract.
#[track_caller]
pub fn preview(client: &Client, which: &str, contract_ref: &str) -> Vec<Value> {
    let documents = client.get(&format!("/api/contracts/invoices/{which}/{contract_ref}")).ok();
    documents.as_array().expect("a list").clone()
}

/// Fields as they are written, texts without their quotes.
pub fn fields<const N: usize>(value: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// Sum, discount, tax, total and what is left to pay, as they are written.
pub fn totals(document: &Value) -> [String; 5] {
    fields(document, ["sub_total", "total_discount", "total_tax", "total", "amount_due"])
}

/// Number, kind, purpose, state and total, as they are written.
pub fn shown(document: &Value) -> [String; 5] {
    fields(document, ["document_number", "kind", "purpose", "state", "total"])
}

/// Every line: line item, first day of its service, quantity and amount, as they are written.
pub fn lines(document: &Value) -> Vec<[String; 4]> {
    let products = document["products"].as_array().expect("products");
    let lines = products.iter().flat_map(|product| product["line_items"].as_array().expect("lines"));
    lines.map(|line| fields(line, ["line_item_id", "service_period_start", "quantity", "amount"])).collect()
}

/// Every line's amount, by its line item.
pub fn amounts(document: &Value) -> Vec<String> {
    lines(document).into_iter().map(|[line_item, _, _, amount]| format!("{line_item} {amount}")).collect()
}

/// The numbers of the documents that belong to one.
pub fn related(document: &Value) -> Vec<String> {
    let related = document["related_documents"].as_array().expect("a list");
    related.iter().map(|related| fields(related, ["document_number"])[0].clone()).collect()
}

/// What of an issued document never changes again, to the byte.
pub fn frozen(document: &Value) -> String {
    let mut document = document.clone();
    let fields = document.as_object_mut().expect("an object");
    fields.retain(|name, _| !DERIVED.contains(&name.as_str()));
    document.to_string()
}

/// The payments and refunds of a document.
///
/// # Panics
/// When it isn't there.
#[track_caller]
pub fn payments(client: &Client, document_ref: &Value) -> Vec<Value> {
    let payments = client.get(&path("/api/documents/payments", document_ref)).ok();
    payments.as_array().expect("a list").clone()
}

/// Takes a payment or a refund back.
pub fn reverse(client: &Client, payment_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/payments/reverse", payment_ref), body)
}

/// Pays a credit or a payment out.
pub fn refund(client: &Client, source_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/refund", source_ref), body)
}

/// Applies an amount of a credit or a payment to a document.
pub fn apply(client: &Client, source_ref: &Value, document_ref: &Value, amount: &str) -> Answer {
    let body = json!({"document_ref": document_ref, "amount": amount});
    client.post(&path("/api/documents/apply", source_ref), &body)
}

/// Takes an application back.
pub fn unapply(client: &Client, application_ref: &Value) -> Answer {
    client.post_nothing(&path("/api/documents/unapply", application_ref))
}

/// Writes a document off, or takes that back.
pub fn write_off(client: &Client, document_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/write-off", document_ref), body)
}

/// What a customer owes: due, overdue, unapplied and written off, of each entity and currency.
///
/// # Panics
/// When there is no such customer.
#[track_caller]
pub fn balance(client: &Client, customer: &str) -> Vec<[String; 4]> {
    let balances = client.get(&format!("/api/customers/balance/{customer}")).ok();
    let balances = balances.as_array().expect("a list");
    balances.iter().map(|balance| fields(balance, ["due", "overdue", "unapplied", "written_off"])).collect()
}

/// A customer's statement of one account: each entry's day, kind, document, amount and balance.
///
/// # Panics
/// When there is more than one account.
#[track_caller]
pub fn statement(client: &Client, customer: &str) -> Vec<String> {
    let statement = crate::catalog::only(client.get(&format!("/api/customers/statement/{customer}")).ok());
    let entries = statement["entries"].as_array().expect("entries");
    entries.iter().map(|entry| fields(entry, ["date", "kind", "document_number", "amount", "balance"]).join(" ")).collect()
}
