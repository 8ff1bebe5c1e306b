//! The page on which administrators log in, step by step: a password, one's own in the place of one that works once, a code.

use maud::{Markup, html};

use crate::frame::outermost;
use crate::parts::href;

/// What the page of the log-in shows again.
#[derive(Clone, Debug, Default)]
pub struct LogIn {
    /// The address that was tried.
    pub email: String,
    /// Where to go after it.
    pub next: String,
    /// Why it wasn't taken.
    pub refused: Option<String>,
    /// What is wanted.
    pub step: Step,
    /// What was said in the steps before, as nobody but the service can read it.
    pub passed: String,
}

/// What is wanted of who logs in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Address and password.
    #[default]
    Password,
    /// A password of their own, after one that works once.
    NewPassword,
    /// A code of their second factor.
    Code,
}

/// The page of the log-in.
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
                    "A new password is given by an owner, or set by whoever runs the server: " code { "usage-billing admin reset-password" }
                },
                Step::NewPassword | Step::Code => p { a href=(again(shown)) { "Begin again" } },
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
        p { "You were given this password by another. Choose your own: 12 to 72 bytes, and no common one." }
        (kept(shown))
        label { "New password" input type="password" name="new_password" autocomplete="new-password" required autofocus; }
    }
}

fn code(shown: &LogIn) -> Markup {
    html! {
        p { "The code that your app shows, or one of your recovery codes." }
        (kept(shown))
        label { "Code"
            input name="code" autocomplete="one-time-code" required maxlength="32" spellcheck="false" autocapitalize="off" autofocus; }
    }
}

/// What the steps before have said.
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
