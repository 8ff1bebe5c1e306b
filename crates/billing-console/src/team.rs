//! Administrator pages: list, roles, invitations, changes and resets.

use maud::{Markup, html};

use crate::parts::{href, instant, name, words};
use crate::roles::{role_links, role_page};
use billing_api::dto::administrators::{AdministratorJson, InvitationJson};
use billing_api::json_view::JsonView;

/// Submitted values of a rejected invitation.
#[derive(Clone, Debug, Default)]
pub struct Invitation {
    /// E-mail address.
    pub email: String,
    /// Role.
    pub role: String,
    /// Errors by field.
    pub wrong: Vec<(String, String)>,
}

/// Roles with their descriptions, from the fewest to the most permissions.
const ROLES: [(&str, &str); 4] = [
    ("read", "read all data"),
    ("finance", "also change customers and contracts, and issue, void and settle documents"),
    ("operator", "also report usage and change the catalog"),
    ("owner", "also manage administrators and API keys"),
];

/// Renders the page of administrators. `own` is the visitor's e-mail address.
pub fn team(administrators: JsonView<'_, Vec<AdministratorJson>>, own: &str, invitation: &Invitation) -> Markup {
    html! {
        h1 { "Team" }
        div.scrolls tabindex="0" role="region" aria-label="Administrators" {
            table {
                thead { tr {
                    th scope="col" { "E-mail address" } th scope="col" { "Role" } th scope="col" { "Second factor" }
                    th scope="col" { "State" } th scope="col" { "Created" } th scope="col" { "Actions" }
                } }
                tbody { @for one in administrators.items() { (row(one, own)) } }
            }
        }
        section {
            h2 { "Invitation" }
            p.muted {
                "An invitation creates a one-time password and shows it to you. "
                "The administrator sets a new password at the first log-in."
            }
            form.stack.wide method="post" action=(href(&["team"])) {
                div.field {
                    label for="invited" { "E-mail address" }
                    input id="invited" type="email" name="email" required maxlength="255" value=(invitation.email)
                        aria-invalid=[is_wrong(invitation, "email")];
                    (reasons(invitation, "email"))
                }
                div.field {
                    label for="role" { "Role" }
                    (roles("role", if invitation.role.is_empty() { "read" } else { &invitation.role }))
                    (role_links(ROLES.map(|(role, _)| role)))
                    (reasons(invitation, "role"))
                }
                div { button { "Invite administrator" } }
            }
        }
    }
}

fn is_wrong(invitation: &Invitation, field: &str) -> Option<&'static str> {
    invitation.wrong.iter().any(|(name, _)| name == field).then_some("true")
}

fn reasons(invitation: &Invitation, field: &str) -> Markup {
    html! { @for (_, reason) in invitation.wrong.iter().filter(|(name, _)| name == field) { p.wrong { (reason) } } }
}

fn roles(id: &str, chosen: &str) -> Markup {
    html! {
        select id=(id) name="role" {
            @for (role, meaning) in ROLES { option value=(role) selected[role == chosen] { (words(role)) ": " (meaning) } }
        }
    }
}

fn row(one: JsonView<'_, AdministratorJson>, own: &str) -> Markup {
    let is_own = one.email().is(own);
    html! {
        tr {
            td { (name(one.email())) @if is_own { " " span.muted { "(you)" } } }
            td { @let role = one.role().to_text(); a href=(role_page(&role)) { (words(&role)) } }
            td { @if one.second_factor_since().is_there() { "on" } @else { span.muted { "off" } } }
            td { (state(one)) }
            td { (instant(one.created_at())) }
            td { (change(one, is_own)) }
        }
    }
}

fn state(one: JsonView<'_, AdministratorJson>) -> Markup {
    html! {
        @if one.disabled_at().is_there() {
            span.state data-state="VOID" { "Disabled" }
        } @else if one.one_time_until().is_there() {
            span.state data-state="DRAFT" { "Invited" } " until " (instant(one.one_time_until()))
        } @else {
            span.state data-state="ACTIVE" { "Enabled" }
        }
    }
}

fn change(one: JsonView<'_, AdministratorJson>, is_own: bool) -> Markup {
    let (reference, email) = (one.admin_ref().to_text(), one.email().to_text());
    let is_disabled = one.disabled_at().is_there();
    html! {
        details {
            summary aria-label={ "Manage " (email) } { "Manage" }
            form.stack method="post" action=(href(&["team", "role", &reference])) {
                label { "Role" (roles(&format!("role-{reference}"), &one.role().to_text())) }
                div { button { "Save role" } }
            }
            @if is_own {
                p.muted { "Manage your password and second factor in " a href=(href(&["account"])) { "your account" } "." }
            } @else {
                form.stack method="post" action=(href(&["team", "reset", &reference])) {
                    p.hint { "Creates a one-time password for an administrator who forgot the password." }
                    @if one.second_factor_since().is_there() {
                        label.check {
                            input type="checkbox" name="remove_second_factor" value="true";
                            span { "Also remove the second factor, if the device and the recovery codes are lost" }
                        }
                    }
                    div { button.plain { "Reset password" } }
                }
            }
            form.stack method="post" action=(href(&["team", if is_disabled { "enable" } else { "disable" }, &reference])) {
                @if is_disabled {
                    div { button.plain { "Enable" } }
                } @else {
                    p.hint { "Logs the administrator out and blocks log-ins. API keys keep working." }
                    div { button.grave { "Disable" } }
                }
            }
        }
    }
}

/// Renders the page with a new one-time password.
pub fn invited(at: JsonView<'_, InvitationJson>, service: &str) -> Markup {
    html! {
        h1 { "One-time password for " (name(at.email())) }
        p {
            strong { "Save the password now. It won't be shown again." }
            " The password works once. Send it to the administrator, who sets a new password at log-in."
        }
        dl.facts {
            div { dt { "Console" } dd { (service) (href(&[])) } }
            div { dt { "E-mail address" } dd { (name(at.email())) } }
            div { dt { "Password" } dd { code { (at.password().to_text()) } } }
            div { dt { "Valid until" } dd { (instant(at.one_time_until())) } }
        }
        p { a href=(href(&["team"])) { "Back to team" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_can_not_reset_oneself_and_is_led_to_ones_account() {
        let all = json!([
            {"admin_ref": "1", "email": "me@example.com", "role": "owner"},
            {"admin_ref": "2", "email": "<i>@example.com", "role": "finance", "second_factor_since": "2026-01-01T00:00:00Z"},
            {"admin_ref": "3", "email": "gone@example.com", "role": "read", "disabled_at": "2026-01-01T00:00:00Z"},
        ]);
        let shown = team(JsonView::of(&all), "me@example.com", &Invitation::default()).into_string();
        assert!(!shown.contains("/console/team/reset/1") && shown.contains("/console/team/reset/2"), "{shown}");
        assert!(shown.contains("/console/team/disable/1") && shown.contains("/console/team/enable/3"), "{shown}");
        assert_eq!(shown.matches("name=\"remove_second_factor\"").count(), 1, "of who has one");
        assert!(!shown.contains("<i>"), "{shown}");
    }

    #[test]
    fn what_is_wrong_with_an_invitation_stands_beside_its_field() {
        let wrong = vec![("email".to_owned(), "is already in use".to_owned())];
        let submitted = Invitation { email: "a@b.example".to_owned(), role: "finance".to_owned(), wrong };
        let shown = team(JsonView::of(&json!([])), "", &submitted).into_string();
        assert!(shown.contains("is already in use") && shown.contains("value=\"a@b.example\""), "{shown}");
        assert!(shown.contains("<option value=\"finance\" selected>"), "{shown}");
    }
}
