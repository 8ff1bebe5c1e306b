//! Reads request bodies within their size, time and media type limits. [`billing_api::dto`] interprets the content.
//!
//! Batches and files may be compressed. Other compressed bodies are rejected.

mod content;
mod file;
mod lines;
mod multipart;
mod parse;

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest, web};
use serde_json::Value;

use content::Content;
pub(crate) use file::UploadedFile;
pub(crate) use lines::Lines;
pub(crate) use multipart::MultipartForm;
pub(crate) use parse::{ParsedBody, is_large, parse};

use crate::context::RequestContext;
use crate::respond::HttpProblem;
use crate::state::state_of;
use billing_api::media_type::{ACCEPTED, CLOUD_EVENTS, JSON, NDJSON};
use billing_api::problem::Problem;

type Extraction<T> = Pin<Box<dyn Future<Output = Result<T, HttpProblem>>>>;

/// A required JSON body of an unauthenticated caller, with a small size limit.
#[derive(Debug)]
pub(crate) struct UnauthenticatedBody(pub(crate) Value);

/// Maximum body size of unauthenticated callers.
pub(crate) const STRANGERS_BYTES: usize = 8 * 1024;

/// A body of an operation that takes JSON, and possibly other types.
#[derive(Debug)]
pub(crate) struct SentBody {
    pub(crate) media_type: &'static str,
    /// The text. It is not parsed yet, because the caller decides on which thread.
    pub(crate) bytes: web::Bytes,
}

/// The body of a batch: one JSON value, or lines that are still arriving.
pub(crate) enum BatchPayload {
    /// A complete body, as bytes. Parsed values take many times more memory, and the batch may have to wait.
    Whole(web::Bytes),
    /// An array of CloudEvents.
    CloudEvents(web::Bytes),
    /// One JSON value per line.
    Lines(Lines),
}

/// Parses the JSON value of a line or of a whole body.
pub(crate) fn read_value(bytes: &[u8]) -> Result<Value, Problem> {
    Ok(billing_json::read(bytes)?)
}

impl FromRequest for UnauthenticatedBody {
    type Error = HttpProblem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = sent_body(request, payload, STRANGERS_BYTES, &[]);
        Box::pin(async move { Ok(Self(read_value(&body.await?.ok_or_else(empty)?.bytes)?)) })
    }
}

/// Returns the problem of a required body that was not sent.
pub(crate) fn empty() -> Problem {
    Problem::malformed("malformed_json", "the body must be a JSON value, not empty")
}

/// Reads an optional body of JSON or of another type.
///
/// # Errors
/// Returns the problem of the headers or of the body.
pub(crate) async fn optional(
    request: &HttpRequest,
    payload: web::Payload,
    or: &'static [&'static str],
) -> Result<Option<SentBody>, Problem> {
    sent_body(request, &mut payload.into_inner(), state_of(request).settings().body_limit_bytes, or).await
}

/// Reads an optional body of JSON or of another type, up to a size limit.
fn sent_body(
    request: &HttpRequest,
    payload: &mut Payload,
    limit: usize,
    or: &'static [&'static str],
) -> impl Future<Output = Result<Option<SentBody>, Problem>> + 'static {
    let sent = IncomingBody::of(request, payload, limit, Problem::too_large);
    async move {
        let sent = sent.await?;
        let media_type = media_type(&sent.request);
        let bytes = sent.read().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        // Forms on foreign pages can send only types that none of these is without a CORS preflight.
        let taken = media_type.filter(|media_type| *media_type == JSON || or.contains(media_type)).ok_or_else(|| {
            let types: Vec<&str> = [JSON].iter().chain(or).copied().collect();
            Problem::unsupported_media_type(&format!("the body must be of the type {}, in UTF-8", types.join(" or ")))
        })?;
        Ok(Some(SentBody { media_type: taken, bytes }))
    }
}

impl FromRequest for BatchPayload {
    type Error = HttpProblem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let limit = state_of(request).settings().batch_limit_bytes;
        let sent = IncomingBody::maybe_compressed(request, payload, limit, Problem::too_large);
        Box::pin(async move {
            let sent = sent.await?;
            match media_type(&sent.request) {
                Some(NDJSON) => {
                    let deadline = RequestContext::of(&sent.request).deadline;
                    Ok(Self::Lines(Lines::new(sent.content(), deadline)))
                }
                Some(JSON) => Ok(Self::Whole(sent.read().await?)),
                Some(CLOUD_EVENTS) => Ok(Self::CloudEvents(sent.read().await?)),
                _ => {
                    let detail = "the body must be of the type application/json, application/x-ndjson or \
                                  application/cloudevents-batch+json, in UTF-8";
                    Err(Problem::unsupported_media_type(detail).into())
                }
            }
        })
    }
}

/// A body that is still arriving and whose headers are valid.
struct IncomingBody {
    request: HttpRequest,
    payload: web::Payload,
    is_gzip: bool,
    limit: usize,
    /// Creates the problem for a body above the limit.
    too_large: fn(usize) -> Problem,
}

impl IncomingBody {
    /// Rejects a compressed body, and a body whose headers are invalid.
    fn of(
        request: &HttpRequest,
        payload: &mut Payload,
        limit: usize,
        too_large: fn(usize) -> Problem,
    ) -> impl Future<Output = Result<Self, Problem>> + 'static {
        let sent = Self::maybe_compressed(request, payload, limit, too_large);
        async move {
            let sent = sent.await?;
            if sent.is_gzip {
                return Err(Problem::unsupported_media_type("only batches and files may be compressed"));
            }
            Ok(sent)
        }
    }

    /// Rejects a body whose headers are invalid.
    fn maybe_compressed(
        request: &HttpRequest,
        payload: &mut Payload,
        limit: usize,
        too_large: fn(usize) -> Problem,
    ) -> impl Future<Output = Result<Self, Problem>> + 'static {
        let request = request.clone();
        let payload = web::Payload::from_request(&request, payload);
        async move {
            let payload = payload.await.map_err(|_| Problem::internal())?;
            let announced = header(&request, &CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
            if announced.is_some_and(|length| length > limit) {
                return Err(too_large(limit));
            }
            let coding = header(&request, &CONTENT_ENCODING).map(str::to_ascii_lowercase);
            let is_gzip = match coding.as_deref() {
                None | Some("identity") => false,
                Some("gzip" | "x-gzip") => true,
                Some(_) => return Err(Problem::unsupported_media_type("the content encoding must be gzip or identity")),
            };
            Ok(Self { request, payload, is_gzip, limit, too_large })
        }
    }

    fn content(self) -> Content {
        Content::new(self.payload, self.is_gzip, self.limit, self.too_large)
    }

    /// Reads the whole body before the deadline.
    async fn read(self) -> Result<web::Bytes, Problem> {
        let deadline = RequestContext::of(&self.request).body_deadline();
        if self.is_gzip {
            let mut content = self.content();
            let whole = async {
                let mut whole = web::BytesMut::new();
                while let Some(bytes) = content.next().await {
                    whole.extend_from_slice(&bytes?);
                }
                Ok(whole.freeze())
            };
            return tokio::time::timeout_at(deadline, whole).await.map_err(|_| Problem::request_timeout())?;
        }
        match tokio::time::timeout_at(deadline, self.payload.to_bytes_limited(self.limit)).await {
            Ok(Ok(Ok(bytes))) => Ok(bytes),
            Ok(Ok(Err(_))) => Err(Problem::incomplete_body()),
            Ok(Err(_)) => Err((self.too_large)(self.limit)),
            Err(_) => Err(Problem::request_timeout()),
        }
    }
}

/// Returns the accepted media type that the type of a body stands for.
fn media_type(request: &HttpRequest) -> Option<&'static str> {
    let sent = header(request, &CONTENT_TYPE);
    // Most requests have exactly this type.
    if sent == Some(JSON) {
        return Some(JSON);
    }
    let (essence, parameters) = sent.map_or(("", ""), |text| text.split_once(';').unwrap_or((text, "")));
    let parameters = parameters.to_ascii_lowercase().replace('"', "");
    let is_taken = |parameter: &str| matches!(parameter.trim(), "" | "charset=utf-8" | "charset=utf8" | "header=present");
    if !parameters.split(';').all(is_taken) {
        return None;
    }
    ACCEPTED.into_iter().find(|(accepted, _)| essence.trim().eq_ignore_ascii_case(accepted)).map(|(_, meant)| meant)
}

fn header<'a>(request: &'a HttpRequest, name: &actix_web::http::header::HeaderName) -> Option<&'a str> {
    // A value that is not text cannot be an accepted type.
    request.headers().get(name).map(|value| value.to_str().unwrap_or("not text"))
}
