//! The stored format of responses. Databases contain these bytes, so the format must stay readable.
//!
//! A JSON response with status 200, the usual case, is stored as its body. Any other response is stored with a head, as
//! in HTTP: the status, headers as `name: value`, one per line, and an empty line. No JSON response begins with a digit,
//! so the first byte distinguishes the two forms.

use billing_domain::idempotency::StoredResponse;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};

use crate::media_type::JSON;

/// Separates head and body.
const END_OF_HEAD: &[u8] = b"\n\n";

/// A success response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Success {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Success {
    /// Creates a response with a body of the given content type.
    pub fn of(content_type: &'static str, body: String) -> Self {
        let headers = vec![(CONTENT_TYPE, HeaderValue::from_static(content_type))];
        Self { status: StatusCode::OK, headers, body: body.into_bytes() }
    }

    /// Creates a response without content.
    pub const fn nothing() -> Self {
        Self { status: StatusCode::NO_CONTENT, headers: Vec::new(), body: Vec::new() }
    }

    /// Creates a JSON response.
    pub fn json(body: String) -> Self {
        Self::of(JSON, body)
    }

    /// Adds a header. A value that no header can have is omitted.
    pub fn with(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    /// Encodes the response for storage.
    pub fn kept(self) -> StoredResponse {
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

    /// Decodes a stored response; returns `None` for bytes in another format.
    pub fn read(answer: StoredResponse) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media_type::NDJSON;

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
