//! The console, as a browser without scripts asks for it.

use crate::client::{Answer, Client, Request};

const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a form.
pub fn submit(client: &Client, path: &str, form: &str) -> Answer {
    client.send(&Request::post(path, form).with("Content-Type", FORM))
}

/// Whether it is a page.
pub fn is_page(answer: &Answer) -> bool {
    answer.header("Content-Type") == "text/html; charset=utf-8"
}

/// A page, as the policy has it.
///
/// # Panics
/// When there is none.
#[track_caller]
pub fn page(client: &Client, path: &str) -> String {
    let answer = client.get(path);
    assert!(answer.status == 200 && is_page(&answer), "{path}: {} {}", answer.status, answer.text);
    let policy = answer.header("Content-Security-Policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    assert_eq!((answer.header("Cache-Control"), answer.header("X-Frame-Options")), ("no-store", "DENY"), "{path}");
    answer.text
}

/// What a page leads to within the console.
pub fn links(page: &str) -> Vec<String> {
    let quoted = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    quoted.filter(|link| link.starts_with("/console")).map(|link| link.replace("&amp;", "&")).collect()
}
