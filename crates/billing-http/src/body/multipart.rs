//! Multipart forms with files from browsers (RFC 7578), read whole.

use actix_web::dev::Payload;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest};

use super::{Extraction, IncomingBody, header};
use crate::respond::HttpProblem;
use billing_api::console::{Upload, UploadField};
use billing_api::problem::Problem;

/// Size limit of a form with a file. Larger files use the API or the command line import.
const MAX_FORM_BYTES: usize = 2 * 1024 * 1024;
/// Maximum number of fields in a form.
const MAX_FIELDS: usize = 5_000;

/// A submitted form with files.
pub(crate) struct MultipartForm(pub(crate) Upload);

impl FromRequest for MultipartForm {
    type Error = HttpProblem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let sent = IncomingBody::of(request, payload, MAX_FORM_BYTES, Problem::file_too_large);
        Box::pin(async move {
            let sent = sent.await?;
            let boundary = header(&sent.request, &CONTENT_TYPE).and_then(boundary).map(str::to_owned);
            let boundary =
                boundary.ok_or_else(|| Problem::unsupported_media_type("the form must be sent as multipart/form-data"))?;
            let bytes = sent.read().await?;
            let malformed = || Problem::malformed("malformed_form", "the form is malformed: send it again");
            Ok(Self(Upload(fields(&bytes, &boundary).ok_or_else(malformed)?)))
        })
    }
}

/// Returns the boundary from the content type.
fn boundary(content_type: &str) -> Option<&str> {
    let (essence, parameters) = content_type.split_once(';')?;
    let boundary = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("boundary="))?;
    let boundary = boundary.trim_matches('"');
    (essence.trim().eq_ignore_ascii_case("multipart/form-data") && (1..=70).contains(&boundary.len())).then_some(boundary)
}

/// Parses the fields in order; returns `None` if the body is malformed.
fn fields(body: &Bytes, boundary: &str) -> Option<Vec<UploadField>> {
    let (first, between) = (format!("--{boundary}"), format!("\r\n--{boundary}"));
    let mut at = find(body, first.as_bytes(), 0)? + first.len();
    let mut found = Vec::new();
    loop {
        let rest = body.get(at..)?;
        if rest.starts_with(b"--") {
            return Some(found);
        }
        if !rest.starts_with(b"\r\n") || found.len() >= MAX_FIELDS {
            return None;
        }
        let head_at = at + 2;
        let head_end = find(body, b"\r\n\r\n", head_at)?;
        let value_at = head_end + 4;
        let value_end = find(body, between.as_bytes(), value_at)?;
        let head = std::str::from_utf8(body.get(head_at..head_end)?).ok()?;
        let (name, file_name) = disposition(head)?;
        found.push(UploadField { name, file_name, bytes: body[value_at..value_end].to_vec() });
        at = value_end + between.len();
    }
}

fn find(body: &[u8], sought: &[u8], from: usize) -> Option<usize> {
    Some(from + body.get(from..)?.windows(sought.len()).position(|window| window == sought)?)
}

/// Returns the field name and the file name. Browsers encode a quote in them as `%22`.
fn disposition(head: &str) -> Option<(String, Option<String>)> {
    let of_disposition = |line: &&str| line.get(..20).is_some_and(|name| name.eq_ignore_ascii_case("content-disposition:"));
    let line = head.split("\r\n").find(of_disposition)?;
    let parameter = |name: &str| {
        let (_, behind) = line.split_once(&format!("; {name}=\""))?;
        let (value, _) = behind.split_once('"')?;
        Some(value.replace("%22", "\"").replace("%0D", "\r").replace("%0A", "\n"))
    };
    Some((parameter("name")?, parameter("filename")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "--x-1\r\nContent-Disposition: form-data; name=\"kind\"\r\n\r\ncsv\r\n--x-1\r\n\
        content-disposition: form-data; name=\"file\"; filename=\"a %22b%22.csv\"\r\nContent-Type: text/csv\r\n\r\na,b\r\n--x\r\n1,2\r\n\
        \r\n--x-1--\r\n";

    #[test]
    fn fields_and_files_come_to_the_byte() {
        let form = Upload(fields(&Bytes::from_static(BODY.as_bytes()), "x-1").expect("a form"));
        assert_eq!((form.text("kind"), form.text("other")), (Some("csv"), None));
        let (name, bytes) = form.file("file").expect("a file");
        assert_eq!((name, bytes), ("a \"b\".csv", b"a,b\r\n--x\r\n1,2\r\n".as_slice()));
        assert_eq!(form.file("kind"), None);
    }

    #[test]
    fn what_is_cut_off_or_no_form_is_not_read() {
        for end in 0..BODY.len() - 4 {
            assert_eq!(fields(&Bytes::copy_from_slice(&BODY.as_bytes()[..end]), "x-1"), None, "{end}");
        }
        assert_eq!(boundary("multipart/form-data; boundary=x-1"), Some("x-1"));
        assert_eq!(boundary("Multipart/Form-Data; charset=utf-8; boundary=\"x-1\""), Some("x-1"));
        for other in ["multipart/form-data", "multipart/mixed; boundary=x", "multipart/form-data; boundary=", "text/csv"] {
            assert_eq!(boundary(other), None, "{other}");
        }
    }
}
