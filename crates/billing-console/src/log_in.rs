//! The log-in page with its steps: password, replacement of a one-time password, and code.

use maud::{Markup, html};

use crate::frame::outermost;
use crate::parts::href;

/// Content of the log-in page.
#[derive(Clone, Debug, Default)]
pub struct LogIn {
    /// Submitted e-mail address.
    pub email: String,
    /// Target after the log-in.
    pub next: String,
    /// Reason for the rejection.
    pub refused: Option<String>,
    /// Current step.
    pub step: Step,
    /// Sealed input of earlier steps, which only the service can read.
    pub passed: String,
}

/// A step of the log-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// E-mail address and password.
    #[default]
    Password,
    /// A new password that replaces a one-time password.
    NewPassword,
    /// A second-factor code.
    Code,
}

/// Renders the log-in page.
pub fn log_in(shown: &LogIn) -> String {
    let body = html! {
        main.log-in {
            h1 { "Usage Billing" }
            @if let Some(why) = &shown.refused { p.notice.refused role="alert" { (why) } }
            form method="post" action=(href(&["log-in"])) {
                @match shown.step {
                    Step::Password => (password(shown)),
                    Step::NewPassword => (new_password(shown)),
                    Step::Code => (code(shown)),
                }
                input type="hidden" name="next" value=(shown.next);
                button { "Log in" }
            }
            @match shown.step {
                Step::Password => p.muted {
                    "If you forgot your password, ask an owner to reset it, or run " code { "usage-billing admin reset-password" } " on the server."
                },
                Step::NewPassword | Step::Code => p { a href=(again(shown)) { "Start over" } },
            }
        }
    };
    outermost("Log in", &body)
}

fn password(shown: &LogIn) -> Markup {
    html! {
        label { "E-mail address"
            input type="email" name="email" value=(shown.email) autocomplete="username" required autofocus; }
        label { "Password" input type="password" name="password" autocomplete="current-password" required; }
    }
}

fn new_password(shown: &LogIn) -> Markup {
    html! {
        p { "This password works only once. Choose a new password of 12 to 72 bytes; common passwords are rejected." }
        (kept(shown))
        label { "New password" input type="password" name="new_password" autocomplete="new-password" required autofocus; }
    }
}

fn code(shown: &LogIn) -> Markup {
    html! {
        p { "Enter a code from your authenticator app or a recovery code." }
        (kept(shown))
        label { "Code"
            input name="code" autocomplete="one-time-code" required maxlength="32" spellcheck="false" autocapitalize="off" autofocus; }
    }
}

/// Renders the hidden fields with the input of earlier steps.
fn kept(shown: &LogIn) -> Markup {
    html! {
        input type="hidden" name="email" value=(shown.email);
        input type="hidden" name="passed" value=(shown.passed);
    }
}

fn again(shown: &LogIn) -> String {
    format!("{}?{}", href(&["log-in"]), crate::parts::query(&[("next", &shown.next)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_asks_for_one_thing_and_keeps_where_one_was_going() {
        let shown = |step| {
            let next = "/console/documents?state=DRAFT".to_owned();
            log_in(&LogIn { email: "a@example.com".to_owned(), next, refused: None, step, passed: "sealed".to_owned() })
        };
        for (step, asked, kept) in [
            (Step::Password, "name=\"password\"", false),
            (Step::NewPassword, "name=\"new_password\"", true),
            (Step::Code, "name=\"code\"", true),
        ] {
            let page = shown(step);
            assert!(page.contains(asked) && page.contains("value=\"/console/documents?state=DRAFT\""), "{page}");
            assert_eq!(page.contains("value=\"sealed\""), kept, "{page}");
        }
    }
}
