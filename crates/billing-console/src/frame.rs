//! What is around every page: where one is, where one can go, who one is, and with which call software asks for the same.

use maud::{DOCTYPE, Markup, html};

use crate::parts::href;

/// What all pages of the console are under.
pub const ROOT: &str = "/console";
/// Where the style sheet is.
pub const STYLE_PATH: &str = "/console/style.css";
/// The style sheet.
pub const STYLE: &str = include_str!("style.css");

/// The parts of the console, in the order of the navigation: where each is, and its name. Those of owners are in [`OF_OWNERS`].
const NAVIGATION: &[(&str, &str)] = &[
    ("", "Home"),
    ("customers", "Customers"),
    ("contracts", "Contracts"),
    ("documents", "Documents"),
    ("usage", "Usage"),
    ("events", "Usage events"),
    ("imports", "Imports"),
    ("refused", "Refused usage"),
    ("payments", "Payments"),
    ("charges", "Charges"),
    ("billing-runs", "Billing runs"),
    ("pricings", "Pricings"),
    ("usage-products", "Usage products"),
    ("entities", "Entities"),
    ("bank-accounts", "Bank accounts"),
    ("formats", "Formats"),
    ("keys", "API keys"),
    ("team", "Team"),
    ("audit", "Audit log"),
];

/// Parts that nobody else is let see.
const OF_OWNERS: [&str; 2] = ["keys", "team"];

/// Who looks at a page.
#[derive(Clone, Debug)]
pub struct CurrentUser {
    /// Their e-mail address.
    pub email: String,
    /// Whether they may manage keys and administrators.
    pub is_owner: bool,
}

/// A step of the way to a page.
#[derive(Clone, Debug)]
pub struct Crumb {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub href: String,
}

/// A call of the interface.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: &'static str,
    /// Path and query.
    pub path: String,
}

/// What a page says first.
#[derive(Clone, Debug)]
pub enum Notice {
    /// Something was done.
    Done(String),
    /// Something wasn't done: its code and why.
    Refused(String, String),
}

/// What is around a page.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What the page is called.
    pub title: String,
    /// The part of the console it belongs to.
    pub part: &'static str,
    /// The way to it.
    pub crumbs: Vec<Crumb>,
    /// Who looks at it, where that is known.
    pub who: Option<CurrentUser>,
    /// Where the service is reached.
    pub service: String,
    /// How software asks for what the page shows.
    pub calls: Vec<Call>,
    /// What is said first.
    pub notice: Option<Notice>,
}

impl Frame {
    /// Around a page that belongs nowhere.
    pub fn bare(title: String, service: String) -> Self {
        Self { title, part: "nowhere", crumbs: Vec::new(), who: None, service, calls: Vec::new(), notice: None }
    }
}

impl Call {
    /// The call for a shell.
    fn for_shell(&self, service: &str) -> String {
        let method = if self.method == "GET" { String::new() } else { format!("-X {} ", self.method) };
        // What no token is taken for is asked with the session of a log-in.
        let is_of_people = ["/auth/", "/api/administrators/"].iter().any(|below| self.path.starts_with(below));
        let credential = if is_of_people { "-b cookies.txt" } else { "-H \"Authorization: Bearer $TOKEN\"" };
        format!("curl -s {method}'{service}{}' {credential}", self.path.replace('\'', "%27"))
    }
}

/// A whole page.
pub fn page(frame: &Frame, body: &Markup) -> String {
    let is_owner = frame.who.as_ref().is_some_and(|who| who.is_owner);
    let body = html! {
        a.skip href="#main" { "Skip to content" }
        header.top {
            a.brand href=(ROOT) { "Usage Billing" }
            form.search role="search" action=(href(&["search"])) {
                input type="search" name="q" aria-label="Search" required maxlength="255" accesskey="/"
                    placeholder="Number, reference, key or name";
                button { "Search" }
            }
            div.who {
                @if let Some(who) = &frame.who {
                    a href=(href(&["account"])) aria-current=[(frame.part == "account").then_some("page")] { (who.email) }
                }
                form method="post" action=(href(&["log-out"])) { button.plain { "Log out" } }
            }
        }
        nav.parts aria-label="Parts" {
            @for (place, name) in NAVIGATION.iter().filter(|(place, _)| is_owner || !OF_OWNERS.contains(place)) {
                @let target = if place.is_empty() { ROOT.to_owned() } else { href(&[place]) };
                a href=(target) aria-current=[(*place == frame.part).then_some("page")] { (name) }
            }
        }
        main #main {
            @if !frame.crumbs.is_empty() {
                nav.crumbs aria-label="Where you are" {
                    @for crumb in &frame.crumbs { a href=(crumb.href) { (crumb.name) } span aria-hidden="true" { " / " } }
                    span { (frame.title) }
                }
            }
            @match &frame.notice {
                Some(Notice::Done(what)) => p.notice role="status" { (what) },
                Some(Notice::Refused(code, why)) => p.notice.refused role="alert" { (why) " " code { (code) } },
                None => {},
            }
            (body)
            @if !frame.calls.is_empty() {
                details.call {
                    summary { "As API call" }
                    @for call in &frame.calls { pre { code { (call.for_shell(&frame.service)) } } }
                }
            }
        }
    };
    outermost(&frame.title, &body)
}

/// A part of a page that is asked for by itself, in which links lead the whole page elsewhere.
pub fn framed(title: &str, part: &Markup) -> String {
    document(title, &html! { base target="_top"; }, &html! { main.framed { (part) } })
}

/// Where such a part stands on its page.
pub fn apart(title: &str, address: &str) -> Markup {
    html! { iframe.apart title=(title) src=(address) {} }
}

/// The page of something that can't be shown.
pub fn problem(frame: &Frame, status: u16, code: &str, detail: &str) -> String {
    let body = html! {
        h1 { (frame.title) }
        p { (detail) }
        p.muted { "Status " (status) ", code " code { (code) } }
        p { a href=(ROOT) { "Home" } }
    };
    page(frame, &body)
}

/// What every page has, with a frame or without.
pub(crate) fn outermost(title: &str, body: &Markup) -> String {
    document(title, &html! {}, body)
}

fn document(title: &str, more_head: &Markup, body: &Markup) -> String {
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " – Usage Billing" }
                link rel="stylesheet" href=(STYLE_PATH);
                link rel="icon" href="data:,";
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
            calls: vec![Call { method: "GET", path: "/api/customers/filter?name='x".to_owned() }],
            notice: Some(Notice::Refused("x".to_owned(), "<i>".to_owned())),
        };
        let page = page(&frame, &html! {});
        assert!(!page.contains("<script>") && !page.contains("<b>") && !page.contains("<i>") && !page.contains("<u>"), "{page}");
        assert!(page.contains("&lt;script&gt;{{7*7}}"));
        assert!(page.contains("name=%27x") && page.contains("Bearer $TOKEN"), "a quote doesn't end the shell's");
        let of_people = Call { method: "GET", path: "/auth/keys/list".to_owned() };
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
}
