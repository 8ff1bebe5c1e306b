//! Bodies in: what is refused, by pointer and code. Bodies out: what is presented, as text.

mod access;
mod contract_changes;
mod contract_lines;
mod contract_view;
mod contracts;
mod documents;
mod events;
mod formats;
mod input;
mod legal;
mod parties;
mod pricings;
mod schemas;

use billing_domain::contract::terms::QuantityStep;
use billing_domain::violation::Violations;
use billing_testkit::fixtures;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// JSON as it comes in.
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// JSON as it goes out.
fn shown(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect("an answer that can be written")
}

/// An answer as it goes out, which fits what the OpenAPI document says of it.
fn presented<T: Serialize + ToSchema>(answer: &T) -> String {
    schemas::assert_fits(answer);
    shown(answer)
}

/// What is presented, as it would come in again.
fn posted_back(answer: &impl Serialize) -> Value {
    json(&shown(answer))
}

/// Quantities from days on.
fn steps(rows: &[(&str, &str)]) -> Vec<QuantityStep> {
    let step =
        |(from, quantity): &(&str, &str)| QuantityStep { from: fixtures::date(from), quantity: fixtures::quantity(quantity) };
    rows.iter().map(step).collect()
}

/// The violations as lines of pointer and code; none of a body that is taken.
fn refusals<T>(result: Result<T, Violations>) -> Vec<String> {
    let found = result.err().unwrap_or_default();
    found.iter().map(|violation| format!("/{} {}", violation.path.join("/"), violation.code)).collect()
}

/// Reads each body of a table and compares what is wrong with it.
fn check<T>(read: impl Fn(&Value) -> Result<T, Violations>, rows: &[(&str, &[&str])]) {
    for (body, expected) in rows {
        assert_eq!(refusals(read(&json(body))), *expected, "{body}");
    }
}

/// A body with one field more, or another in its place.
fn with(body: &str, field: &str, value: &str) -> Value {
    let mut body = json(body);
    body.as_object_mut().expect("an object").insert(field.to_owned(), json(value));
    body
}

/// Sets one field of a body that is otherwise taken to each value of a table.
fn check_field<T>(read: impl Fn(&Value) -> Result<T, Violations>, body: &str, rows: &[(&str, &str, &[&str])]) {
    for (field, value, expected) in rows {
        assert_eq!(refusals(read(&with(body, field, value))), *expected, "{field}: {value}");
    }
}
