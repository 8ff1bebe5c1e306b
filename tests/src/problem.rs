//! Refusals: their common format, and tables of requests that must be rejected.

use serde_json::Value;

use crate::{Answer, Client, Request};

/// An expected refusal.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The error code that clients switch on.
    pub code: &'static str,
    /// All field errors in any order, each a pointer and a code: `/quantity required, /timestamp wrong_type`.
    pub errors: &'static str,
}

/// Returns a refusal without field errors.
pub const fn refused(status: u16, code: &'static str) -> Refusal {
    Refusal { status, code, errors: "" }
}

/// Returns a refusal of invalid fields.
pub const fn invalid(errors: &'static str) -> Refusal {
    Refusal { status: 422, code: "validation_failed", errors }
}

/// Returns a refusal by a rule that one field violates.
pub const fn rule(code: &'static str, errors: &'static str) -> Refusal {
    Refusal { status: 422, code, errors }
}

impl Refusal {
    /// Compares a response with the expected refusal.
    ///
    /// # Errors
    /// Returns a description of the difference.
    pub fn check(&self, answer: &Answer) -> Result<(), String> {
        let expected = (self.status, self.code.to_owned(), sorted(self.errors.split(", ").filter(|error| !error.is_empty())));
        let found = (answer.status, answer.body["code"].as_str().unwrap_or_default().to_owned(), errors(&answer.body));
        if found != expected {
            return Err(format!("{expected:?} is expected, not {found:?}: {}", answer.text));
        }
        form(answer)
    }
}

/// Checks that a response has the common format of all errors.
///
/// # Errors
/// Returns a description of the wrong part of the response.
pub fn form(answer: &Answer) -> Result<(), String> {
    let wrong = |what: &str| Err(format!("{what}: {} {}", answer.status, answer.text));
    if answer.header("Content-Type") != "application/problem+json" {
        return wrong("not a problem document");
    }
    for member in ["type", "title", "detail", "instance", "code", "request_id"] {
        if answer.body[member].as_str().is_none_or(str::is_empty) {
            return wrong(member);
        }
    }
    if answer.body["status"] != answer.status || !answer.body["errors"].is_array() {
        return wrong("status or errors");
    }
    let snake_case = |code: &str| code.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if !answer.body["code"].as_str().is_some_and(snake_case) {
        return wrong("code");
    }
    let complete = |error: &Value| error["detail"].as_str().is_some_and(|detail| !detail.is_empty());
    match answer.body["errors"].as_array().is_some_and(|errors| errors.iter().all(complete)) {
        true => Ok(()),
        false => wrong("an error without detail"),
    }
}

/// Returns the field errors as `pointer code`, sorted.
fn errors(body: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let errors = body["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let shown: Vec<String> = errors.iter().map(|error| format!("{} {}", text(&error["pointer"]), text(&error["code"]))).collect();
    sorted(shown.iter().map(String::as_str))
}

fn sorted<'a>(errors: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut errors: Vec<String> = errors.map(str::to_owned).collect();
    errors.sort();
    errors
}

/// A table of requests that must be rejected. A wrong row does not stop the table, so that one run shows every wrong
/// row.
#[derive(Debug, Default)]
pub struct Table {
    wrong: Vec<String>,
    rows: usize,
}

impl Table {
    /// Sends a request that must be rejected.
    pub fn row(&mut self, client: &Client, what: &str, request: &Request<'_>, refusal: Refusal) {
        let outcome = client.try_send(request).map_err(|error| format!("no answer: {error}"));
        self.note(what, request, outcome.and_then(|answer| refusal.check(&answer)));
    }

    /// Sends a POST request with a JSON body that must be rejected.
    pub fn post(&mut self, client: &Client, path: &str, body: &Value, refusal: Refusal) {
        let text = body.to_string();
        let what: String = text.chars().take(300).collect();
        self.row(client, &what, &Request::post(path, text.into_bytes()), refusal);
    }

    /// Sends a GET request that must be rejected.
    pub fn get(&mut self, client: &Client, path: &str, refusal: Refusal) {
        self.row(client, "", &Request::get(path), refusal);
    }

    /// Records the outcome of a row.
    pub fn note(&mut self, what: &str, request: &Request<'_>, outcome: Result<(), String>) {
        self.rows += 1;
        if let Err(reason) = outcome {
            self.wrong.push(format!("{} {} {what}\n    {reason}", request.method, request.path));
        }
    }

    /// Fails if a row was wrong.
    ///
    /// # Panics
    /// Panics if a row was wrong or if the table has no rows.
    #[track_caller]
    pub fn finish(self) {
        assert!(self.rows > 0, "an empty table tests nothing");
        assert!(self.wrong.is_empty(), "{} of {} rows:\n{}", self.wrong.len(), self.rows, self.wrong.join("\n"));
    }
}
