//! A page before it is a whole one.

use billing_console::{Call, Crumb, Frame, Notice};
use maud::Markup;

use super::visitor::{Visitor, service};

/// A page as it is made.
pub(super) struct Made {
    pub(super) title: String,
    pub(super) part: &'static str,
    pub(super) crumbs: Vec<Crumb>,
    /// What it was asked for with: paths of the interface.
    pub(super) calls: Vec<String>,
    pub(super) body: Markup,
}

impl Made {
    /// A page that is the only one of its part.
    pub(super) fn of(title: &str, part: &'static str, calls: &[&str], body: Markup) -> Self {
        let calls = calls.iter().map(|path| (*path).to_owned()).collect();
        Self { title: title.to_owned(), part, crumbs: Vec::new(), calls, body }
    }
}

/// A page with what is around it.
pub(super) fn framed(visitor: &Visitor, made: Made, notice: Option<Notice>) -> String {
    let calls = made.calls.into_iter().map(|path| Call { method: "GET", path }).collect();
    let frame = Frame {
        title: made.title,
        part: made.part,
        crumbs: made.crumbs,
        who: Some(visitor.who()),
        service: service(&visitor.request),
        calls,
        notice,
    };
    billing_console::page(&frame, &made.body)
}
