//! The content of a page before it is rendered.

use billing_console::{Call, Crumb, Frame, Listing, Notice, href};
use maud::Markup;

use super::lists::crumbs;
use super::session_user::SessionUser;

/// A page in construction.
pub(super) struct PageBuilder {
    pub(super) title: String,
    pub(super) part: &'static str,
    pub(super) crumbs: Vec<Crumb>,
    /// API calls of the page: paths, prefixed with `POST ` for POST requests.
    pub(super) calls: Vec<String>,
    pub(super) body: Markup,
}

impl PageBuilder {
    /// Creates the only page of a part of the console.
    pub(super) fn of(title: &str, part: &'static str, calls: &[&str], body: Markup) -> Self {
        let calls = calls.iter().map(|path| (*path).to_owned()).collect();
        Self { title: title.to_owned(), part, crumbs: Vec::new(), calls, body }
    }

    /// Renders the complete page.
    pub(super) fn page(self, visitor: &SessionUser, notice: Option<Notice>) -> String {
        let Self { title, part, crumbs, calls, body } = self;
        let calls = calls.into_iter().map(call).collect();
        visitor.page(&Frame { part, crumbs, calls, notice, ..visitor.frame(title) }, &body)
    }
}

fn call(call: String) -> Call {
    match call.strip_prefix("POST ") {
        Some(path) => Call { method: "POST", path: path.to_owned() },
        None => Call { method: "GET", path: call },
    }
}

/// Renders a page in a part of the console, optionally about one object.
pub(super) fn render_page(visitor: &SessionUser, title: String, part: &'static str, about: Option<&str>, body: Markup) -> String {
    let mut crumbs = Listing::of(part).map(crumbs).unwrap_or_default();
    crumbs.extend(about.map(|reference| Crumb { name: reference.to_owned(), href: href(&[part, reference]) }));
    PageBuilder { title, part, crumbs, calls: Vec::new(), body }.page(visitor, None)
}
