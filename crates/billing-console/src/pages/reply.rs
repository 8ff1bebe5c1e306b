//! Answers with pages and problems.

use billing_api::console::PageAnswer;
use billing_api::problem::{FieldProblem, Problem};
use http::StatusCode;
use serde_json::Value;

/// Redirects to another page.
pub(super) fn to(location: &str) -> PageAnswer {
    PageAnswer::Redirect(location.to_owned())
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
