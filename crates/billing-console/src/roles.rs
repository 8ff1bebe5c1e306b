//! The page of a role: what administrators with it may do, in the words of the operations.

use maud::{Markup, html};

use crate::parts::{href, section, words};

/// An operation that changes data.
#[derive(Clone, Copy, Debug)]
pub struct RoleOperation {
    /// Operation id, which names its page in the API reference.
    pub id: &'static str,
    /// The area of the operation.
    pub area: &'static str,
    /// One sentence about its effect.
    pub effect: &'static str,
    /// The lowest role that may run it.
    pub role: &'static str,
}

/// The page of a role.
#[derive(Clone, Debug)]
pub struct RolePage {
    /// The role.
    pub role: &'static str,
    /// All roles, from the fewest to the most permissions.
    pub roles: Vec<&'static str>,
    /// The operations that the role may run.
    pub permitted: Vec<RoleOperation>,
    /// The operations that require a higher role.
    pub others: Vec<RoleOperation>,
}

/// Returns the address of the page of a role.
pub(crate) fn role_page(role: &str) -> String {
    href(&["roles", role])
}

/// Renders links to the pages of roles.
pub(crate) fn role_links<'r>(roles: impl IntoIterator<Item = &'r str>) -> Markup {
    html! {
        p.links { span.muted { "What each role may do:" } @for role in roles { a href=(role_page(role)) { (words(role)) } } }
    }
}

/// Renders the page of a role.
pub fn role(page: &RolePage) -> Markup {
    html! {
        h1 { "Role " (page.role) }
        p { "An administrator with this role reads all data" @if page.role != "owner" { ", except administrators and API keys" } "." }
        @if page.permitted.is_empty() {
            p { "The role changes nothing but the own account." }
        } @else {
            (section("Permitted operations", &areas(&page.permitted, None)))
        }
        @if !page.others.is_empty() { (section("Operations of higher roles", &areas(&page.others, Some("requires the role")))) }
        (role_links(page.roles.iter().copied()))
    }
}

/// Renders operations by area.
fn areas(operations: &[RoleOperation], requires: Option<&str>) -> Markup {
    html! {
        @for of_area in operations.chunk_by(|one, next| one.area == next.area) {
            @if let Some(first) = of_area.first() { h3 { @if first.area == "auth" { "API keys" } @else { (words(first.area)) } } }
            ul {
                @for operation in of_area {
                    li {
                        a href={ "/docs/operations/" (operation.id) } { (operation.effect) }
                        @if let Some(requires) = requires { " " span.muted { (requires) " " (operation.role) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_names_what_it_may_do_and_which_role_the_rest_requires() {
        let operation = |id, effect, role| RoleOperation { id, area: "catalog", effect, role };
        let page = RolePage {
            role: "finance",
            roles: vec!["read", "finance"],
            permitted: vec![operation("issue_document", "Issues a draft.", "finance")],
            others: vec![operation("create_customer", "Creates a customer.", "operator")],
        };
        let shown = role(&page).into_string();
        let (may, may_not) = shown.split_once("Operations of higher roles").expect("two lists");
        assert!(may.contains("Issues a draft.") && !may.contains("requires"), "{shown}");
        assert!(may_not.contains("Creates a customer.") && may_not.contains("requires the role operator"), "{shown}");
        let read = role(&RolePage { role: "read", permitted: Vec::new(), ..page }).into_string();
        assert!(read.contains("changes nothing"), "{read}");
    }
}
