//! Log-in in steps. The browser carries the earlier steps' input in sealed form, and each step performs a complete API
//! log-in.

use crate::{LogIn, ROOT, Step};
use billing_api::console::{FormData, Gateway, PageAnswer};
use billing_domain::calendar::Timestamp;
use serde_json::{Value, json};

use super::form_data;
use super::reply::{caption, to};
use billing_api::dto::log_in::LogIn as Credential;
use billing_api::problem::Problem;

/// Time limit of the next step in seconds.
const STEP_SECONDS: i64 = 300;

/// The input of earlier steps.
#[derive(Default)]
struct LogInProgress {
    password: String,
    new_password: Option<String>,
}

/// Logs an administrator in. Redirects to the requested page or shows the next step.
pub(super) async fn log_in(gateway: &dyn Gateway, submitted: &FormData) -> PageAnswer {
    let whole = |name: &str| submitted.iter().find(|(submitted, _)| submitted == name).map(|(_, value)| value.clone());
    let field = |name| form_data::field(submitted, name).unwrap_or_default().to_owned();
    let (email, next) = (field("email"), field("next"));
    let mut passed = match whole("passed") {
        None => LogInProgress { password: whole("password").unwrap_or_default(), new_password: None },
        Some(sealed) => match opened(gateway, &email, &sealed) {
            Some(passed) => passed,
            None => return begin_again(email, next),
        },
    };
    passed.new_password = whole("new_password").or(passed.new_password);
    let code = form_data::field(submitted, "code").map(str::to_owned);
    let credential = Credential::Administrator {
        email: email.clone(),
        password: passed.password.clone(),
        new_password: passed.new_password.clone(),
        code: code.clone(),
    };
    let problem = match gateway.log_in(credential).await {
        Ok(()) => return to(if is_own(&next) { &next } else { ROOT }),
        Err(problem) => problem,
    };
    let step = match problem.code() {
        "new_password_required" | "password_refused" => Step::NewPassword,
        "second_factor_required" | "invalid_code" | "second_factor_locked" => Step::Code,
        // A rate-limited code attempt stays on the code step, so that the user can retry later.
        "too_many_log_ins" if code.is_some() => Step::Code,
        _ => Step::Password,
    };
    let is_asked_first = problem.code().ends_with("_required");
    let refused = (!is_asked_first).then(|| reason(&problem));
    if problem.code() == "password_refused" {
        passed.new_password = None;
    }
    let sealed = if step == Step::Password { Some(String::new()) } else { sealed(gateway, &email, &passed) };
    match sealed {
        Some(passed) => caption(problem, crate::log_in(&LogIn { email, next, refused, step, passed })),
        None => begin_again(email, next),
    }
}

fn reason(problem: &Problem) -> String {
    match problem.errors().first() {
        Some(error) => format!("The new password {}.", error.detail),
        None => problem.detail().to_owned(),
    }
}

/// Returns the first step after the time limit expired.
fn begin_again(email: String, next: String) -> PageAnswer {
    let refused = Some("the log-in timed out: log in again".to_owned());
    let page = crate::log_in(&LogIn { email, next, refused, ..LogIn::default() });
    caption(Problem::unauthenticated(true), page)
}

/// Returns the context that binds sealed input to one e-mail address, so that another log-in cannot use it.
fn place(email: &str) -> String {
    format!("log-in of {}", email.to_lowercase())
}

fn sealed(gateway: &dyn Gateway, email: &str, passed: &LogInProgress) -> Option<String> {
    let until = gateway.machine_now().plus_seconds(STEP_SECONDS);
    let submitted = json!({"until": until.as_micros(), "password": passed.password, "new_password": passed.new_password});
    let bytes = gateway.seal(&place(email), &submitted.to_string())?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn opened(gateway: &dyn Gateway, email: &str, sealed: &str) -> Option<LogInProgress> {
    let digits = sealed.as_bytes().chunks(2);
    let bytes: Vec<u8> =
        digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect::<Option<_>>()?;
    let submitted: Value = serde_json::from_slice(&gateway.open(&place(email), &bytes)?).ok()?;
    let until = Timestamp::from_micros(submitted["until"].as_i64()?).ok()?;
    let text = |name: &str| submitted[name].as_str().map(str::to_owned);
    (gateway.machine_now() < until).then_some(LogInProgress { password: text("password")?, new_password: text("new_password") })
}

/// Returns whether the target is a console page. Redirects elsewhere are not allowed. The path is checked as written and decoded,
/// because browsers and proxies remove segments such as `..` and `%2e%2e` from a path.
pub(super) fn is_own(next: &str) -> bool {
    let path = next.split(['?', '#']).next().unwrap_or_default();
    let is_below = path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let Ok(meant) = String::from_utf8(decoded(path)) else { return false };
    let is_plain = |text: &str| !text.contains(|c: char| c == '\\' || c.is_control()) && !text.contains("//");
    is_below && is_plain(next) && is_plain(&meant) && !meant.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// Decodes the percent-encoded bytes of a path. Other text, also an incomplete escape, stays as it is.
fn decoded(path: &str) -> Vec<u8> {
    let digit = |byte: Option<&u8>| u8::try_from(char::from(*byte?).to_digit(16)?).ok();
    let mut rest = path.as_bytes();
    let mut decoded = Vec::with_capacity(rest.len());
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| digit(after.first()).zip(digit(after.get(1)))).flatten();
        match escaped {
            Some((high, low)) => {
                decoded.push((high << 4) | low);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_leads_to_pages_of_the_console_alone() {
        for (next, expected) in [
            ("/console", true),
            ("/console/documents?state=DRAFT", true),
            ("/console?x", true),
            ("", false),
            ("//evil.example", false),
            ("https://evil.example/console", false),
            ("/consoles", false),
            ("/console//evil.example", false),
            ("/console/\\evil.example", false),
            ("/console/\r\nSet-Cookie: x", false),
            ("/console/../evil", false),
            ("/console/..", false),
            ("/console/./documents", false),
            ("/console/%2e%2e/evil", false),
            ("/console/.%2E/evil", false),
            ("/console/..%2fevil", false),
            ("/console/%2f/evil", false),
            ("/console/%5cevil", false),
            ("/console/%0d%0aSet-Cookie: x", false),
            ("/console/%ff", false),
            ("/console#../evil", true),
            ("/console/customers/a..b", true),
            ("/console/customers/100%25?order=name&at=..", true),
        ] {
            assert_eq!(is_own(next), expected, "{next:?}");
        }
    }
}
