//! A page between what it shows and what is around it.

use billing_console::{Call, Crumb, Frame, Notice};
use maud::Markup;

use super::visitor::{Visitor, service};

/// A page as it is made.
pub(super) struct Made {
    pub(super) title: String,
    pub(super) part: &'static str,
    pub(super) crumbs: Vec<Crumb>,
    /// Paths, of what is posted behind `POST` and a space.
    pub(super) calls: Vec<String>,
    pub(super) body: Markup,
}

impl Made {
    /// The whole page.
    pub(super) fn page(self, visitor: &Visitor, notice: Option<Notice>) -> String {
        let Self { title, part, crumbs, calls, body } = self;
        let calls = calls.into_iter().map(call).collect();
        billing_console::page(&Frame { title, part, crumbs, service: service(&visitor.request), calls, notice }, &body)
    }
}

fn call(call: String) -> Call {
    match call.strip_prefix("POST ") {
        Some(path) => Call { method: "POST", path: path.to_owned() },
        None => Call { method: "GET", path: call },
    }
}
