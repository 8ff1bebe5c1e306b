//! The content of a page before it is rendered.

use crate::{Crumb, Frame, Listing, Notice};
use maud::Markup;

use super::lists::crumbs;
use super::session_user::SessionUser;

/// A page in construction.
pub(super) struct PageBuilder {
    pub(super) title: String,
    pub(super) part: &'static str,
    pub(super) crumbs: Vec<Crumb>,
    pub(super) body: Markup,
}

impl PageBuilder {
    /// Creates a page without breadcrumbs.
    pub(super) fn of(title: &str, part: &'static str, body: Markup) -> Self {
        Self { title: title.to_owned(), part, crumbs: Vec::new(), body }
    }

    /// Renders the complete page, with the visitor's API calls.
    pub(super) fn page(self, user: &SessionUser, notice: Option<Notice>) -> String {
        let Self { title, part, crumbs, body } = self;
        user.page(&Frame { part, crumbs, calls: user.calls(), notice, ..user.frame(title) }, &body)
    }
}

/// Renders a page without API calls in a part of the console.
pub(super) fn render_page(user: &SessionUser, title: String, part: &'static str, body: Markup) -> String {
    let crumbs = Listing::of(part).map(crumbs).unwrap_or_default();
    PageBuilder { title, part, crumbs, body }.page(&user.quietly(), None)
}
