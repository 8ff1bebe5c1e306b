//! The visitor's own account: password, second factor and sessions.

use maud::{Markup, PreEscaped, html};
use qrcode::{EcLevel, QrCode, render::svg};

use crate::parts::{href, instant, name, section, words};
use crate::roles::role_page;
use billing_api::dto::own_account::{OwnAccountJson, OwnSessionJson, RecoveryCodesJson};
use billing_api::json_view::{JsonAnswer, JsonView};

/// API responses for the account page.
#[derive(Clone, Debug)]
pub struct AccountAnswers {
    /// The administrator.
    pub account: JsonAnswer<OwnAccountJson>,
    /// The administrator's sessions.
    pub sessions: JsonAnswer<Vec<OwnSessionJson>>,
    /// The form that was rejected; empty if none was.
    pub tried: String,
    /// Errors of that form by field.
    pub wrong: Vec<(String, String)>,
}

/// Renders the account page.
pub fn account(answers: &AccountAnswers) -> Markup {
    let at = answers.account.view();
    html! {
        h1 { "Your account" }
        dl.facts {
            div { dt { "E-mail address" } dd { (name(at.email())) } }
            div { dt { "Role" } dd { @let role = at.role().to_text(); a href=(role_page(&role)) { (words(&role)) } } }
            div { dt { "Organization" } dd { (name(at.organization())) } }
            div { dt { "Session expires" } dd { (instant(at.expires_at())) } }
        }
        (section("Password", &password(answers)))
        (section("Second factor", &second_factor(answers, at)))
        (section("Sessions", &sessions(answers.sessions.view())))
    }
}

/// Renders a form field with its errors.
fn field(answers: &AccountAnswers, form: &str, name: &str, label: &str, input: &Markup) -> Markup {
    let wrong = answers.wrong.iter().filter(|(field, _)| answers.tried == form && field == name);
    html! {
        div.field {
            label for={ (form) "-" (name) } { (label) }
            (input)
            @for (_, reason) in wrong { p.wrong { (reason) } }
        }
    }
}

fn secret(form: &str, name: &str, autocomplete: &str) -> Markup {
    html! { input id={ (form) "-" (name) } type="password" name=(name) autocomplete=(autocomplete) required maxlength="255"; }
}

fn code(form: &str) -> Markup {
    html! {
        input id={ (form) "-code" } name="code" autocomplete="one-time-code" required maxlength="32" spellcheck="false"
            autocapitalize="off";
    }
}

fn password(answers: &AccountAnswers) -> Markup {
    html! {
        form.stack.narrow method="post" action=(href(&["account", "password"])) {
            (field(answers, "password", "password", "Current password", &secret("password", "password", "current-password")))
            (field(answers, "password", "new_password", "New password", &secret("password", "new_password", "new-password")))
            p.hint { "12 to 72 bytes; common passwords are rejected. Changing the password ends your other sessions." }
            div { button { "Change password" } }
        }
    }
}

/// Renders the form with which administrators enter their password again before a page may change who has access. `next` is the
/// page to return to.
pub fn confirmation(next: &str, wrong: Option<&str>) -> Markup {
    html! {
        h1 { "Confirm your password" }
        p { "This action changes who has access, so it requires your password again. Then repeat the action within 5 minutes." }
        form.stack.narrow method="post" action=(href(&["confirm"])) {
            input type="hidden" name="next" value=(next);
            div.field {
                label for="confirm-password" { "Password" }
                (secret("confirm", "password", "current-password"))
                @if let Some(reason) = wrong { p.wrong { (reason) } }
            }
            div { button { "Confirm" } }
        }
    }
}

fn second_factor(answers: &AccountAnswers, at: JsonView<'_, OwnAccountJson>) -> Markup {
    html! {
        @if at.second_factor_since().is_there() {
            p {
                "Enabled since " (instant(at.second_factor_since())) ". Recovery codes left: "
                (at.recovery_codes_left().to_text()) "."
            }
            details open[answers.tried == "remove"] {
                summary { "Remove second factor" }
                form.stack.narrow method="post" action=(href(&["account", "second-factor", "remove"])) {
                    (field(answers, "remove", "password", "Password", &secret("remove", "password", "current-password")))
                    (field(answers, "remove", "code", "Authenticator code or recovery code", &code("remove")))
                    div { button.grave { "Remove second factor" } }
                }
            }
        } @else {
            p { "Disabled. With a second factor, every log-in also requires a code from an authenticator app." }
            form method="post" action=(href(&["account", "second-factor", "enroll"])) { button { "Set up second factor" } }
        }
    }
}

fn sessions(all: JsonView<'_, Vec<OwnSessionJson>>) -> Markup {
    let has_others = all.items().count() > 1;
    html! {
        div.scrolls tabindex="0" role="region" aria-label="Sessions" {
            table {
                thead { tr {
                    th scope="col" { "Started" } th scope="col" { "Last active" } th scope="col" { "Expires" } th scope="col" { "Browser" }
                    th scope="col" { "Actions" }
                } }
                tbody { @for one in all.items() { tr {
                    td { (instant(one.created_at())) }
                    td { (instant(one.last_seen_at())) }
                    td { (instant(one.expires_at())) }
                    td.agent { (one.user_agent().to_text()) }
                    td {
                        @if one.is_current().is_true() {
                            "Current session"
                        } @else {
                            form method="post" action=(href(&["account", "sessions", "end", &one.session_ref().to_text()])) {
                                button.plain { "End session" }
                            }
                        }
                    }
                } } }
            }
        }
        @if has_others {
            form method="post" action=(href(&["account", "sessions", "end-others"])) { button.plain { "End other sessions" } }
        }
    }
}

/// A second factor that awaits its first code.
#[derive(Clone, Debug)]
pub struct Enrollment {
    /// The secret.
    pub secret: String,
    /// The secret as an `otpauth` URI for authenticator apps.
    pub uri: String,
    /// Errors of the code.
    pub wrong: Vec<String>,
}

/// Renders the enrollment page with the secret.
pub fn enrolled(enrollment: &Enrollment) -> Markup {
    let Enrollment { secret, uri, wrong } = enrollment;
    let groups: Vec<String> = secret.as_bytes().chunks(4).map(|group| String::from_utf8_lossy(group).into_owned()).collect();
    html! {
        h1 { "Second factor setup" }
        ol {
            li { "Scan this QR code with an authenticator app." }
            li { "If you can't scan the code, enter this secret: " code { (groups.join(" ")) } }
            li { "Enter the code that the app shows." }
        }
        @if let Some(picture) = picture(uri) { div.qr { (PreEscaped(picture)) } }
        form.stack.narrow method="post" action=(href(&["account", "second-factor", "confirm"])) {
            div.field {
                label for="first-code" { "Code" }
                input id="first-code" name="code" autocomplete="one-time-code" inputmode="numeric" required maxlength="32" autofocus
                    aria-invalid=[(!wrong.is_empty()).then_some("true")];
                @for reason in wrong { p.wrong { (reason) } }
            }
            input type="hidden" name="secret" value=(secret);
            input type="hidden" name="uri" value=(uri);
            div { button { "Confirm" } }
        }
        p { a href=(href(&["account"])) { "Cancel" } }
    }
}

/// Renders a QR code. It is always black on white, because scanners may not read inverted colors. Returns `None` if the
/// text is too long.
fn picture(uri: &str) -> Option<String> {
    let code = QrCode::with_error_correction_level(uri, EcLevel::M).ok()?;
    let drawn = code.render::<svg::Color<'_>>().min_dimensions(200, 200).build();
    // Removes the XML declaration, because the SVG is embedded.
    drawn.find("<svg").map(|begin| drawn[begin..].replacen("<svg", "<svg role=\"img\" aria-label=\"QR code of the secret\"", 1))
}

/// Renders the page with the recovery codes for a lost device.
pub fn recovery_codes(answer: &JsonAnswer<RecoveryCodesJson>) -> Markup {
    html! {
        h1 { "Recovery codes" }
        p {
            strong { "Save these codes now. They won't be shown again." }
            " If you lose your device, log in with a recovery code instead of an authenticator code. Each code works once. Print \
              the codes or store them in a password manager."
        }
        ul.codes { @for code in answer.view().recovery_codes().items() { li { code { (code.to_text()) } } } }
        p { "Every log-in now requires a code." }
        p { a.button href=(href(&["account"])) { "I have saved the codes" } }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn answers(account: Value) -> AccountAnswers {
        AccountAnswers { account: account.into(), sessions: json!([]).into(), tried: String::new(), wrong: Vec::new() }
    }

    #[test]
    fn a_second_factor_is_set_up_where_there_is_none_and_removed_where_there_is() {
        let off = account(&answers(json!({"email": "a@example.com"}))).into_string();
        assert!(off.contains("second-factor/enroll") && !off.contains("second-factor/remove"), "{off}");
        let on = json!({"second_factor_since": "2026-01-01T00:00:00Z", "recovery_codes_left": 9});
        let on = account(&answers(on)).into_string();
        assert!(!on.contains("second-factor/enroll") && on.contains("second-factor/remove") && on.contains("left: 9"), "{on}");
    }

    #[test]
    fn what_is_wrong_stands_beside_its_field_of_the_form_that_was_sent() {
        let wrong = vec![("password".to_owned(), "must be your current password".to_owned())];
        let on = json!({"second_factor_since": "2026-01-01T00:00:00Z"});
        let shown = account(&AccountAnswers { tried: "remove".to_owned(), wrong, ..answers(on) }).into_string();
        assert_eq!(shown.matches("must be your current password").count(), 1, "{shown}");
        assert!(shown.contains("<details open>"), "{shown}");
    }

    #[test]
    fn the_secret_is_a_picture_and_text_and_stays_when_a_code_is_wrong() {
        let uri = "otpauth://totp/Usage%20Billing:a%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Usage%20Billing";
        let secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";
        let shown =
            enrolled(&Enrollment { secret: secret.to_owned(), uri: uri.to_owned(), wrong: vec!["is not valid".to_owned()] });
        let shown = shown.into_string();
        assert!(shown.contains("<svg role=\"img\"") && !shown.contains("<?xml") && !shown.contains("style="), "{shown}");
        assert!(shown.contains("GEZD GNBV") && shown.contains("is not valid") && shown.contains(&format!("value=\"{secret}\"")));
        // The secret is escaped as text.
        let evil = Enrollment { secret: "<script>".to_owned(), uri: "\"><script>".to_owned(), wrong: Vec::new() };
        assert!(!enrolled(&evil).into_string().contains("<script>"));
    }
}
