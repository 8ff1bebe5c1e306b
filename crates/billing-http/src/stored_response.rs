//! Answers as the bytes that are kept of them. Databases hold such bytes: how they are read never changes.
//!
//! JSON with status 200, as nearly every answer is, is its body. Any other has a head before its body, as HTTP has: its
//! status, its headers as `name: value`, each on a line, and an empty line. No JSON that is answered begins with a digit, so
//! the first byte tells which it is.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use billing_domain::idempotency::StoredResponse;

use crate::body::JSON;
use crate::problem::Problem;

/// What stands between a head and its body.
const END_OF_HEAD: &[u8] = b"\n\n";

/// What a success is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Success {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Vec<u8>,
}

impl Success {
    /// A body of some type.
    pub(crate) fn of(content_type: &'static str, body: String) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
        Self { status: StatusCode::OK, headers, body: body.into_bytes() }
    }

    /// Nothing to say.
    pub(crate) const fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Vec::new() }
    }

    /// JSON.
    pub(crate) fn json(body: String) -> Self {
        Self::of(JSON, body)
    }

    /// With another header.
    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// As it is kept.
    pub(crate) fn kept(self) -> StoredResponse {
        let Self { status, headers, body } = self;
        let starts_like_a_head = body.first().is_some_and(u8::is_ascii_digit);
        if status == StatusCode::OK && headers == Self::json(String::new()).headers && !starts_like_a_head {
            return StoredResponse(body);
        }
        let mut bytes = status.as_str().as_bytes().to_vec();
        for (name, value) in &headers {
            bytes.extend([b"\n", name.as_str().as_bytes(), b": ", value.as_bytes()].concat());
        }
        StoredResponse([&bytes, END_OF_HEAD, &body].concat())
    }

    /// What was kept; `None` for bytes that this doesn't write.
    fn read(answer: StoredResponse) -> Option<Self> {
        let StoredResponse(bytes) = answer;
        if !bytes.first().is_some_and(u8::is_ascii_digit) {
            return Some(Self { body: bytes, ..Self::json(String::new()) });
        }
        let end = bytes.windows(END_OF_HEAD.len()).position(|two| two == END_OF_HEAD)?;
        let mut lines = bytes[..end].split(|byte| *byte == b'\n');
        let status = StatusCode::from_bytes(lines.next()?).ok()?;
        let header = |line: &[u8]| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let value = line[colon..].strip_prefix(b": ")?;
            Some((HeaderName::from_bytes(&line[..colon]).ok()?, HeaderValue::from_bytes(value).ok()?))
        };
        let headers = lines.map(header).collect::<Option<_>>()?;
        Some(Self { status, headers, body: bytes[end + END_OF_HEAD.len()..].to_vec() })
    }
}

/// Gives an answer that may have been kept, with what is said of it now.
///
/// # Errors
/// Internal, for bytes that hold no answer.
pub(crate) fn respond(answer: StoredResponse, said: Option<(HeaderName, &'static str)>) -> Result<HttpResponse, Problem> {
    let Success { status, headers, body } = Success::read(answer).ok_or_else(Problem::internal)?;
    let mut response = HttpResponse::build(status);
    for header in headers {
        response.insert_header(header);
    }
    if let Some((name, value)) = said {
        response.insert_header((name, HeaderValue::from_static(value)));
    }
    Ok(response.body(body))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::NDJSON;

    fn kept(success: &Success) -> Vec<u8> {
        success.clone().kept().0
    }

    #[test]
    fn json_is_kept_as_it_is_and_all_else_with_a_head() {
        let replayed = HeaderName::from_static("idempotency-replayed");
        for (success, bytes) in [
            (Success::json("{\"a\":1}".to_owned()), "{\"a\":1}"),
            (Success::json(String::new()), ""),
            (Success::json("1".to_owned()), "200\ncontent-type: application/json\n\n1"),
            (Success::of(NDJSON, "{}\n\n{}\n".to_owned()), "200\ncontent-type: application/x-ndjson\n\n{}\n\n{}\n"),
            (
                Success::json("{}".to_owned()).with(replayed, "true"),
                "200\ncontent-type: application/json\nidempotency-replayed: true\n\n{}",
            ),
            (Success { status: StatusCode::CREATED, headers: Vec::new(), body: Vec::new() }, "201\n\n"),
        ] {
            assert_eq!(String::from_utf8(kept(&success)).as_deref(), Ok(bytes));
            assert_eq!(Success::read(StoredResponse(bytes.into())), Some(success));
        }
    }

    #[test]
    fn bytes_that_hold_no_answer_are_not_read_as_one() {
        for bytes in ["200", "200\ncontent-type: text/csv", "2\n\n", "200\nno colon\n\n", "200\na:b\n\n"] {
            assert_eq!(Success::read(StoredResponse(bytes.into())), None, "{bytes:?}");
        }
    }
}
