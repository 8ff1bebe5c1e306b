//! Functions that change and read documents and events.

use serde_json::{Value, json};

use crate::{Answer, Client};

/// The fields of an issued document that later documents and payments can change.
const DERIVED: [&str; 13] = [
    "state",
    "due_date",
    "paid_date",
    "paid_amount",
    "credits_amount",
    "written_off_amount",
    "amount_due",
    "unapplied_amount",
    "updated_at",
    "applications",
    "write_offs",
    "overdue",
    "related_documents",
];

/// Returns the path of an operation on the object with a reference.
#[track_caller]
fn path(operation: &str, reference: &Value) -> String {
    format!("{operation}/{}", reference.as_str().unwrap_or_else(|| panic!("{reference} is not a reference")))
}

/// Returns a document.
///
/// # Panics
/// Panics if the document does not exist.
#[track_caller]
pub fn document(client: &Client, document_ref: &Value) -> Value {
    client.get(&path("/api/documents", document_ref)).ok()
}

/// Returns the document with a number.
///
/// # Panics
/// Panics if the document does not exist.
#[track_caller]
pub fn numbered(client: &Client, number: &str) -> Value {
    let documents = crate::catalog::documents(client);
    let found = documents.iter().find(|document| document["document_number"] == number);
    found.unwrap_or_else(|| panic!("no {number} in {}", Value::Array(documents.clone()))).clone()
}

/// Returns the notifications that match a query string, as soon as there is one.
///
/// # Panics
/// Panics if there is none within a minute.
#[track_caller]
pub fn notifications(client: &Client, query: &str) -> Vec<Value> {
    let begun = std::time::Instant::now();
    loop {
        let found = client.get(&format!("/api/notifications/filter?{query}")).ok();
        let found = found.as_array().expect("a list").clone();
        if !found.is_empty() {
            return found;
        }
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "no notification matches {query}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Returns all notifications after a position, read page by page, once every stored notification has its position.
///
/// # Panics
/// Panics if a notification has no position within a minute.
#[track_caller]
pub fn feed(database: &crate::Database, client: &Client, mut after: u64) -> Vec<Value> {
    let begun = std::time::Instant::now();
    while database.ask("SELECT count(*) FROM notifications WHERE position IS NULL") != ["0"] {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "not all notifications are numbered");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut all = Vec::new();
    loop {
        let page = client.get(&format!("/api/notifications/filter?after={after}&pageSize=100")).ok();
        let page = page.as_array().expect("a list").clone();
        let Some(last) = page.last() else { return all };
        after = last["position"].as_u64().expect("a position");
        all.extend(page);
    }
}

/// Reports an event and returns the response.
///
/// # Panics
/// Panics if the server rejects the event.
#[track_caller]
pub fn report(client: &Client, event: &Value) -> Value {
    client.post("/api/usage/event", event).ok()
}

/// Returns an event as it is stored.
///
/// # Panics
/// Panics if the event does not exist.
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

/// Returns every revision of an event.
///
/// # Panics
/// Panics if the event does not exist.
#[track_caller]
pub fn history(client: &Client, event_ref: &Value) -> Vec<Value> {
    let history = client.get(&path("/api/usage/event/history", event_ref)).ok();
    history.as_array().expect("a list").clone()
}

/// Issues the due documents and returns the issued documents.
///
/// # Panics
/// Panics if the billing of a contract fails.
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

/// Voids an issued document.
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

/// Cancels a contract, at the end of its period or now.
pub fn cancel(client: &Client, contract_ref: &str, now: bool) -> Answer {
    client.post(&format!("/api/contracts/cancel/{contract_ref}"), &json!({"include_current_invoice": now}))
}

/// Returns the documents that a contract bills in its current or its next period.
///
/// # Panics
/// Panics if the contract does not exist.
#[track_caller]
pub fn preview(client: &Client, which: &str, contract_ref: &str) -> Vec<Value> {
    let documents = client.get(&format!("/api/contracts/invoices/{which}/{contract_ref}")).ok();
    documents.as_array().expect("a list").clone()
}

/// Returns fields as the JSON writes them, but strings without their quotes.
pub fn fields<const N: usize>(value: &Value, names: [&str; N]) -> [String; N] {
    names.map(|name| match &value[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// Returns subtotal, discount, tax, total and amount due, in the format of [`fields`].
pub fn totals(document: &Value) -> [String; 5] {
    fields(document, ["sub_total", "total_discount", "total_tax", "total", "amount_due"])
}

/// Returns number, kind, purpose, state and total, in the format of [`fields`].
pub fn shown(document: &Value) -> [String; 5] {
    fields(document, ["document_number", "kind", "purpose", "state", "total"])
}

/// Returns line item, first day of service, quantity and amount of every line, in the format of [`fields`].
pub fn lines(document: &Value) -> Vec<[String; 4]> {
    let products = document["products"].as_array().expect("products");
    let lines = products.iter().flat_map(|product| product["line_items"].as_array().expect("lines"));
    lines.map(|line| fields(line, ["line_item_id", "service_period_start", "quantity", "amount"])).collect()
}

/// Returns the line item and the amount of every line.
pub fn amounts(document: &Value) -> Vec<String> {
    lines(document).into_iter().map(|[line_item, _, _, amount]| format!("{line_item} {amount}")).collect()
}

/// Returns the numbers of the documents that are related to a document.
pub fn related(document: &Value) -> Vec<String> {
    let related = document["related_documents"].as_array().expect("a list");
    related.iter().map(|related| fields(related, ["document_number"])[0].clone()).collect()
}

/// Returns the part of an issued document that never changes again, to the byte.
pub fn frozen(document: &Value) -> String {
    let mut document = document.clone();
    let fields = document.as_object_mut().expect("an object");
    fields.retain(|name, _| !DERIVED.contains(&name.as_str()));
    document.to_string()
}

/// Returns the payments and refunds of a document.
///
/// # Panics
/// Panics if the document does not exist.
#[track_caller]
pub fn payments(client: &Client, document_ref: &Value) -> Vec<Value> {
    let payments = client.get(&path("/api/documents/payments", document_ref)).ok();
    payments.as_array().expect("a list").clone()
}

/// Reverses a payment or a refund.
pub fn reverse(client: &Client, payment_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/payments/reverse", payment_ref), body)
}

/// Refunds a credit or a payment.
pub fn refund(client: &Client, source_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/refund", source_ref), body)
}

/// Applies an amount of a credit or a payment to a document.
pub fn apply(client: &Client, source_ref: &Value, document_ref: &Value, amount: &str) -> Answer {
    let body = json!({"document_ref": document_ref, "amount": amount});
    client.post(&path("/api/documents/apply", source_ref), &body)
}

/// Reverses an application.
pub fn unapply(client: &Client, application_ref: &Value) -> Answer {
    client.post_nothing(&path("/api/documents/unapply", application_ref))
}

/// Writes off a document, or reverses the write-off.
pub fn write_off(client: &Client, document_ref: &Value, body: &Value) -> Answer {
    client.post(&path("/api/documents/write-off", document_ref), body)
}

/// Returns the balance of a customer for each entity and currency: due, overdue, unapplied and written off.
///
/// # Panics
/// Panics if the customer does not exist.
#[track_caller]
pub fn balance(client: &Client, customer: &str) -> Vec<[String; 4]> {
    let balances = client.get(&format!("/api/customers/balance/{customer}")).ok();
    let balances = balances.as_array().expect("a list");
    balances.iter().map(|balance| fields(balance, ["due", "overdue", "unapplied", "written_off"])).collect()
}

/// Checks that a customer owes the totals of the issued documents minus the payments, in cents.
///
/// # Errors
/// Returns an error if the balance differs.
///
/// # Panics
/// Panics if a total is not an amount.
pub fn check_owed(client: &Client, customer: &str, documents: &[Value], paid: i64) -> Result<(), String> {
    let is_issued = |document: &&Value| !matches!(document["state"].as_str(), Some("DRAFT" | "VOID"));
    let total = |document: &Value| {
        let sign = if document["kind"] == "CREDIT" { -1 } else { 1 };
        sign * cents(&document["total"].to_string())
    };
    let owed = documents.iter().filter(is_issued).map(total).sum::<i64>() - paid;
    let balances = balance(client, customer);
    let found: i64 = balances.iter().map(|[due, _, unapplied, _]| cents(due) - cents(unapplied)).sum();
    if found == owed { Ok(()) } else { Err(format!("{owed} cents are owed, and the balance says {balances:?}")) }
}

/// Converts an amount with two decimals to cents.
///
/// # Panics
/// Panics if the text is not an amount.
pub fn cents(amount: &str) -> i64 {
    amount.replace('.', "").parse().unwrap_or_else(|_| panic!("{amount} is not an amount"))
}

/// Returns the statement of a customer with one account: date, kind, document, amount and balance of each entry.
///
/// # Panics
/// Panics unless the customer has exactly one account.
#[track_caller]
pub fn statement(client: &Client, customer: &str) -> Vec<String> {
    let statement = crate::catalog::only(client.get(&format!("/api/customers/statement/{customer}")).ok());
    let entries = statement["entries"].as_array().expect("entries");
    entries.iter().map(|entry| fields(entry, ["date", "kind", "document_number", "amount", "balance"]).join(" ")).collect()
}
