//! The page on which administrators log in.

use maud::html;

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
}

/// The page of the log-in.
pub fn log_in(shown: &LogIn) -> String {
    let body = html! {
        main.log-in {
            h1 { "Usage Billing" }
            @if let Some(why) = &shown.refused { p.notice.refused role="alert" { (why) } }
            form method="post" action=(href(&["log-in"])) {
                label { "E-mail address"
                    input type="email" name="email" value=(shown.email) autocomplete="username" required autofocus; }
                label { "Password" input type="password" name="password" autocomplete="current-password" required; }
                input type="hidden" name="next" value=(shown.next);
                button { "Log in" }
            }
            p.muted { "A new password is set by whoever runs the server: " code { "usage-billing admin reset-password" } }
        }
    };
    outermost("Log in", &body)
}
