//! The `Prefer` header of requests (RFC 7240).

use actix_web::HttpRequest;
use actix_web::http::header::{HeaderMap, HeaderName};
use billing_domain::report::NumbersAs;

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");

/// Returns the requested representation of decimals.
pub(crate) fn wanted(request: &HttpRequest) -> NumbersAs {
    if wants_strings(request.headers()) { NumbersAs::String } else { NumbersAs::Number }
}

/// Returns whether the headers contain `numbers=string`.
pub(crate) fn wants_strings(headers: &HeaderMap) -> bool {
    let preferences = headers.get_all(PREFER).filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let mut named = preferences.map(|preference| preference.split(';').next().unwrap_or_default().trim());
    named.any(|preference| match preference.split_once('=') {
        Some((name, value)) => name.trim().eq_ignore_ascii_case("numbers") && value.trim().trim_matches('"') == "string",
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn strings_are_asked_for_by_a_preference_among_others() {
        let wants =
            |header: &str| wants_strings(TestRequest::default().insert_header(("Prefer", header)).to_http_request().headers());
        for header in ["numbers=string", "respond-async, numbers=string", r#"Numbers = "string"; x=1, wait=5"#] {
            assert!(wants(header), "{header}");
        }
        for header in ["numbers", "numbers=number", "x=numbers=string", "numbersx=string", ""] {
            assert!(!wants(header), "{header}");
        }
    }
}
