//! The frame of every page: breadcrumbs, navigation, current user and the equivalent API calls.

use billing_domain::calendar::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::assets::{Asset, SCRIPT, STYLE};
use crate::parts::{href, instant_of, isolated};

pub use billing_api::console::ROOT;

/// A group of the navigation.
struct NavigationGroup {
    name: &'static str,
    /// Path segment and name of the group's parts. Parts in [`OF_OWNERS`] are visible only to owners.
    parts: &'static [(&'static str, &'static str)],
}

/// The navigation below the home page.
const NAVIGATION: &[NavigationGroup] = &[
    NavigationGroup {
        name: "Billing",
        parts: &[
            ("customers", "Customers"),
            ("contracts", "Contracts"),
            ("documents", "Documents"),
            ("payments", "Payments"),
            ("charges", "Charges"),
            ("limits", "Limits"),
            ("credit", "Credit"),
            ("billing-runs", "Billing runs"),
        ],
    },
    NavigationGroup {
        name: "Usage",
        parts: &[("usage", "Usage explorer"), ("events", "Usage events"), ("imports", "Imports"), ("refused", "Rejected usage")],
    },
    NavigationGroup {
        name: "Catalog",
        parts: &[("pricings", "Pricings"), ("usage-products", "Usage products"), ("formats", "Usage formats")],
    },
    NavigationGroup {
        name: "Settings",
        parts: &[
            ("entities", "Entities"),
            ("bank-accounts", "Bank accounts"),
            ("webhooks", "Webhooks"),
            ("keys", "API keys"),
            ("team", "Team"),
            ("audit", "Audit log"),
        ],
    },
];

/// Returns the parts of the menu.
#[cfg(test)]
pub(crate) fn parts() -> impl Iterator<Item = &'static str> {
    NAVIGATION.iter().flat_map(|group| group.parts).map(|(part, _)| *part)
}

/// Parts without an entry of their own, and the part whose entry is current there.
const BELOW: [(&str, &str); 2] = [("deliveries", "webhooks"), ("draws", "credit")];

/// Parts that only owners can see.
const OF_OWNERS: [&str; 2] = ["keys", "team"];

/// The visitor of a page.
#[derive(Clone, Debug)]
pub struct CurrentUser {
    /// E-mail address.
    pub email: String,
    /// Whether the user may manage keys and administrators.
    pub is_owner: bool,
}

/// A breadcrumb.
#[derive(Clone, Debug)]
pub struct Crumb {
    /// Label.
    pub name: String,
    /// Link target.
    pub href: String,
}

/// An API call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// HTTP method.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
    /// Operation id, which names its page in the API reference.
    pub operation: &'static str,
}

/// A message at the top of a page.
#[derive(Clone, Debug)]
pub enum Notice {
    /// A successful action.
    Done(String),
    /// A rejected action: its code and reason.
    Refused(String, String),
}

/// Everything around a page's content.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Page title.
    pub title: String,
    /// The part of the console that contains the page.
    pub part: &'static str,
    /// Breadcrumbs to the page.
    pub crumbs: Vec<Crumb>,
    /// The visitor, if known.
    pub who: Option<CurrentUser>,
    /// Base URL of the service.
    pub service: String,
    /// API calls that return the page's data.
    pub calls: Vec<Call>,
    /// Message at the top of the page.
    pub notice: Option<Notice>,
    /// The clock of a sandbox, above the content.
    pub sandbox: Option<SandboxBar>,
}

/// The bar of a sandbox, which moves its clock.
#[derive(Clone, Copy, Debug)]
pub struct SandboxBar {
    /// The instant that the clock shows.
    pub now: Timestamp,
    /// Whether the visitor may move the clock.
    pub may_advance: bool,
}

impl Frame {
    /// Creates a frame for a page outside the navigation.
    pub fn bare(title: String, service: String) -> Self {
        Self { title, part: "nowhere", crumbs: Vec::new(), who: None, service, calls: Vec::new(), notice: None, sandbox: None }
    }
}

impl Call {
    /// Returns the call as a shell command.
    fn for_shell(&self, service: &str) -> String {
        let method = if self.method == "GET" { String::new() } else { format!("-X {} ", self.method) };
        // Operations that do not accept tokens use the session cookie of a log-in.
        let is_of_people = ["/auth/", "/api/administrators/"].iter().any(|below| self.path.starts_with(below));
        let credential = if is_of_people { "-b cookies.txt" } else { "-H \"Authorization: Bearer $TOKEN\"" };
        format!("curl -s {method}'{service}{}' {credential}", self.path.replace('\'', "%27"))
    }
}

/// Renders a complete page.
pub fn page(frame: &Frame, body: &Markup) -> String {
    let (content, has_table) = with_table_anchor(body);
    let body = html! {
        a.skip href="#main" { "Skip to content" }
        @if has_table { a.skip href=(format!("#{TABLE}")) { "Skip to table" } }
        header.top {
            a.brand href=(ROOT) { "Usage Billing" }
            form.search role="search" action=(href(&["search"])) {
                input type="search" name="q" aria-label="Search" required maxlength="255" accesskey="/"
                    placeholder="Name, number, e-mail or VAT ID";
                button { "Search" }
            }
            div.who {
                @if let Some(who) = &frame.who {
                    a href=(href(&["account"])) aria-current=[(frame.part == "account").then_some("page")] { (isolated(&who.email)) }
                }
                form method="post" action=(href(&["log-out"])) { button.plain { "Log out" } }
            }
        }
        (navigation(frame))
        main #main {
            @if let Some(bar) = &frame.sandbox { (sandbox_bar(bar)) }
            @if !frame.crumbs.is_empty() {
                nav.crumbs aria-label="Breadcrumb" {
                    @for crumb in &frame.crumbs { a href=(crumb.href) { (isolated(&crumb.name)) } span aria-hidden="true" { " / " } }
                    span { (isolated(&frame.title)) }
                }
            }
            @match &frame.notice {
                Some(Notice::Done(what)) => p.notice role="status" { (what) },
                Some(Notice::Refused(code, why)) => p.notice.refused role="alert" { (why) " " code { (code) } },
                None => {},
            }
            (content)
            @if !frame.calls.is_empty() {
                details.call {
                    summary { "Requests of this page" }
                    @for call in &frame.calls {
                        pre tabindex="0" { code { (call.for_shell(&frame.service)) } }
                        p { "Reference: " a href={ "/docs/operations/" (call.operation) } { code { (call.operation) } } }
                    }
                }
            }
        }
    };
    outermost(&frame.title, &body)
}

/// Path segment of the page of a sandbox's clock.
pub(crate) const CLOCK: &str = "clock";

/// Renders the bar of a sandbox.
fn sandbox_bar(bar: &SandboxBar) -> Markup {
    html! {
        form.sandbox method="post" action=(href(&[CLOCK])) aria-label="Sandbox" {
            span { strong { "Sandbox" } ": nothing here is real. The clock shows " a href=(href(&[CLOCK])) { (instant_of(&bar.now.to_string())) } "." }
            @if bar.may_advance {
                span.steps {
                    @for step in ClockStep::ALL { button.plain name="step" value=(step.word()) { (step.label()) } }
                    input type="date" name="day" aria-label="Day";
                    button.plain name="step" value="day" { "To this day" }
                }
            }
        }
    }
}

/// A step of a sandbox's clock that needs no further input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockStep {
    OneDay,
    OneMonth,
    NextDue,
}

impl ClockStep {
    pub(crate) const ALL: [Self; 3] = [Self::OneDay, Self::OneMonth, Self::NextDue];

    /// Returns the value of the step's button.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::OneDay => "one-day",
            Self::OneMonth => "one-month",
            Self::NextDue => "next",
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Self::OneDay => "+1 day",
            Self::OneMonth => "+1 month",
            Self::NextDue => "To the next due instant",
        }
    }
}

/// Renders the navigation. On a narrow screen, a row of groups stands above the parts of the current group, so the group's name
/// is a link there.
fn navigation(frame: &Frame) -> Markup {
    let is_owner = frame.who.as_ref().is_some_and(|who| who.is_owner);
    let current = BELOW.iter().find(|(part, _)| *part == frame.part).map_or(frame.part, |(_, above)| *above);
    html! {
        nav.parts aria-label="Main navigation" {
            a.home href=(ROOT) aria-current=[current.is_empty().then_some("page")] { "Home" }
            @for NavigationGroup { name, parts } in NAVIGATION {
                @let is_here = parts.iter().any(|(part, _)| *part == current);
                @let first = parts.first().map_or_else(|| ROOT.to_owned(), |(part, _)| href(&[part]));
                div.group.here[is_here] {
                    a.tab href=(first) aria-current=[is_here.then_some("true")] { (name) }
                    span.name { (name) }
                    ul {
                        @for (part, title) in parts.iter().filter(|(part, _)| is_owner || !OF_OWNERS.contains(part)) {
                            li { a href=(href(&[part])) aria-current=[(*part == current).then_some("page")] { (title) } }
                        }
                    }
                }
            }
        }
    }
}

/// Id of the first table of a page.
const TABLE: &str = "table";
/// Beginning of a table's markup. User input cannot contain it, because `<` is escaped.
const TABLE_BEGINS: &str = "<div class=\"scrolls\"";

/// Marks the first table of a page as a target, and returns whether a table exists. Many filters can stand above a table.
fn with_table_anchor(body: &Markup) -> (Markup, bool) {
    match body.0.split_once(TABLE_BEGINS) {
        Some((before, rest)) => (PreEscaped(format!("{before}<div id=\"{TABLE}\" class=\"scrolls\"{rest}")), true),
        None => (body.clone(), false),
    }
}

/// Renders an embedded frame. Its links open in the whole page.
pub fn framed(title: &str, part: &Markup) -> String {
    document(title, &html! { base target="_top"; }, &html! { main.framed { (part) } })
}

/// Renders the placeholder that loads an embedded frame.
pub fn apart(title: &str, address: &str) -> Markup {
    html! { iframe.apart title=(title) src=(address) {} }
}

/// Renders an error page.
pub fn problem(frame: &Frame, status: u16, code: &str, detail: &str) -> String {
    let body = html! {
        h1 { (frame.title) }
        p { (detail) }
        p.muted { "Status " (status) ", code " code { (code) } }
        p { a href=(ROOT) { "Home" } }
    };
    page(frame, &body)
}

/// Renders the outermost HTML of a page.
pub(crate) fn outermost(title: &str, body: &Markup) -> String {
    document(title, &html! { script src=(SCRIPT.address()) defer {} }, body)
}

fn document(title: &str, more_head: &Markup, body: &Markup) -> String {
    let head = html! { link rel="icon" href="data:,"; (more_head) };
    html_document(&format!("{title} – Usage Billing"), &STYLE, &head, body)
}

/// Renders a whole document.
pub(crate) fn html_document(title: &str, style: &Asset, more_head: &Markup, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                link rel="stylesheet" href=(style.address());
                (more_head)
            }
            body { (body) }
        }
    };
    document.into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_page_is_called_is_text() {
        let frame = Frame {
            title: "<script>{{7*7}}".to_owned(),
            part: "customers",
            crumbs: vec![Crumb { name: "<b>".to_owned(), href: "/console/customers".to_owned() }],
            who: Some(CurrentUser { email: "<u>".to_owned(), is_owner: false }),
            service: "https://billing.example".to_owned(),
            calls: vec![Call { method: "GET", path: "/api/customers/filter?name='x".to_owned(), operation: "list_customers" }],
            notice: Some(Notice::Refused("x".to_owned(), "<i>".to_owned())),
            sandbox: None,
        };
        let page = page(&frame, &html! {});
        assert!(!page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>") && !page.contains("<u>"), "{page}");
        assert!(page.contains("&lt;script&gt;{{7*7}}"));
        assert!(page.contains("name=%27x") && page.contains("Bearer $TOKEN"), "a quote doesn't end the shell's");
        let of_people = Call { method: "GET", path: "/auth/keys/list".to_owned(), operation: "list_keys" };
        assert_eq!(of_people.for_shell("https://b.example"), "curl -s 'https://b.example/auth/keys/list' -b cookies.txt");
    }

    #[test]
    fn the_navigation_shows_what_one_may_see() {
        let frame = |is_owner| Frame {
            who: Some(CurrentUser { email: "a@example.com".to_owned(), is_owner }),
            ..Frame::bare("Home".to_owned(), String::new())
        };
        for (is_owner, links) in [(true, 1), (false, 0)] {
            let page = page(&frame(is_owner), &html! {});
            for part in OF_OWNERS {
                assert_eq!(page.matches(&format!("href=\"/console/{part}\"")).count(), links, "{part}: {page}");
            }
            assert!(page.contains("href=\"/console/account\"") && page.contains("href=\"/console/audit\""), "{page}");
        }
    }

    #[test]
    fn the_current_part_and_its_group_are_marked_once() {
        let of = |part| page(&Frame { part, ..Frame::bare("Page".to_owned(), String::new()) }, &html! {});
        for (part, link) in [
            ("", "<a class=\"home\" href=\"/console\" aria-current=\"page\">Home</a>"),
            ("documents", "<a href=\"/console/documents\" aria-current=\"page\">Documents</a>"),
            ("deliveries", "<a href=\"/console/webhooks\" aria-current=\"page\">Webhooks</a>"),
        ] {
            let page = of(part);
            assert!(page.contains(link) && page.matches("aria-current=\"page\"").count() == 1, "{part}: {page}");
            let group = page.matches("class=\"group here\"").count();
            assert_eq!((group, page.matches("aria-current=\"true\"").count()), (usize::from(!part.is_empty()), group), "{page}");
        }
        assert!(!of("nowhere").contains("aria-current"), "no part is current");
        for (index, group) in NAVIGATION.iter().enumerate() {
            for (part, _) in group.parts {
                assert_eq!(
                    NAVIGATION.iter().flat_map(|group| group.parts).filter(|(other, _)| other == part).count(),
                    1,
                    "{part}"
                );
            }
            assert!(!OF_OWNERS.contains(&group.parts[0].0), "everybody may see the first part of group {index}");
        }
    }

    #[test]
    fn a_page_with_a_table_has_a_link_that_skips_to_its_first_table() {
        let frame = Frame::bare("Page".to_owned(), String::new());
        let table = || html! { div.scrolls tabindex="0" role="region" aria-label="x" { table {} } };
        let with = page(&frame, &html! { form {} (table()) (table()) });
        assert!(with.contains("href=\"#table\"") && with.matches("id=\"table\" class=\"scrolls\"").count() == 1, "{with}");
        let without = page(&frame, &html! { div.scrolls.chart {} p { "<div class=\"scrolls\">" } });
        assert!(!without.contains("#table") && !without.contains("id=\"table\""), "{without}");
    }
}
