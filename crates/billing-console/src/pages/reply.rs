//! Answers with pages and problems.

use billing_api::console::PageAnswer;
use billing_api::dto::money::PaymentJson;
use billing_api::json_view::JsonAnswer;
use billing_api::problem::{FieldProblem, Problem};
use http::StatusCode;
use serde_json::Value;

use crate::href;

/// Redirects to another page.
pub(super) fn to(location: &str) -> PageAnswer {
    PageAnswer::Redirect(location.to_owned())
}

/// Redirects to the page of an answer after the action at a place, with the query that selects the notice. `amount` is submitted
/// and stated in the notice. `part` and `field` are the part of the page, and the field of the answer with the reference.
pub(super) fn after(place: [&str; 2], (part, field): (&str, &str), amount: Option<&str>, answer: &JsonAnswer) -> PageAnswer {
    let (reference, payment) = (answer.view().named(field).to_text(), answer.view().read_as::<PaymentJson>());
    let customer = payment.customer_ref().to_text();
    let page = match (part, reference.as_str(), customer.as_str()) {
        // An answer about a deposit has no document.
        ("documents", "", customer) if !customer.is_empty() => href(&["customers", customer]),
        (part, "", _) => href(&[part]),
        (part, reference, _) => href(&[part, reference]),
    };
    let [kind, what] = place;
    let currency = payment.currency().to_text();
    let stated = |amount| crate::query(&[("amount", &crate::with_digits(amount, &currency)), ("currency", &currency)]);
    let stated = amount.map(|amount| format!("&{}", stated(amount))).unwrap_or_default();
    to(&format!("{page}?done={kind}.{what}{stated}"))
}

pub(super) const fn html(html: String) -> PageAnswer {
    PageAnswer::Page { html, problem: None, refreshes: false }
}

/// Returns a page that shows a problem itself.
pub(super) const fn caption(problem: Problem, html: String) -> PageAnswer {
    PageAnswer::Page { html, problem: Some(problem), refreshes: false }
}

/// Returns data for the script of a page.
pub(super) fn data(content: &Value) -> PageAnswer {
    PageAnswer::Data(content.to_string())
}

/// Returns whether a problem is shown beside the form. Other problems have a page of their own.
pub(super) fn belongs_beside(problem: &Problem) -> bool {
    matches!(problem.status(), StatusCode::UNPROCESSABLE_ENTITY | StatusCode::CONFLICT)
}

/// Returns the field errors of a problem, or its detail.
pub(super) fn reasons(problem: &Problem) -> String {
    if problem.errors().is_empty() {
        return problem.detail().to_owned();
    }
    let reason = |error: &FieldProblem| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail);
    problem.errors().iter().map(reason).collect::<Vec<_>>().join("; ")
}
