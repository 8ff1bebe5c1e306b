//! Reading request bodies: how large, how long, of which type. What is in them is the business of [`crate::dto`].
//!
//! Bodies are read as they are sent: a compressed one is refused, because limits would apply to what it unpacks to.

mod file;
mod lines;
mod multipart;

use std::future::Future;
use std::pin::Pin;

use actix_web::dev::Payload;
use actix_web::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use actix_web::{FromRequest, HttpRequest, web};
use serde_json::Value;

pub(crate) use file::UploadedFile;
pub(crate) use lines::Lines;
pub(crate) use multipart::MultipartForm;

use crate::middleware::RequestContext;
use crate::problem::Problem;
use crate::state::state_of;

pub(crate) const JSON: &str = "application/json";
pub(crate) const NDJSON: &str = "application/x-ndjson";
pub(crate) const CSV: &str = "text/csv";

type Extraction<T> = Pin<Box<dyn Future<Output = Result<T, Problem>>>>;

/// A JSON body that must be there.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Value);

/// A JSON body that must be there, of somebody who isn't known yet: no larger than what it can say.
#[derive(Debug)]
pub(crate) struct UnauthenticatedBody(pub(crate) Value);

/// The most bytes that are read of a stranger.
pub(crate) const STRANGERS_BYTES: usize = 8 * 1024;

/// A JSON body that may be left out.
#[derive(Debug)]
pub(crate) struct OptionalBody(pub(crate) Option<Value>);

/// The body of a batch: one JSON value, or lines of them that are still on their way.
pub(crate) enum BatchPayload {
    /// Arrived whole. As bytes: what they say takes many times their room, which a batch that waits for its turn shouldn't keep.
    Whole(web::Bytes),
    /// One value a line.
    Lines(Lines),
}

/// Reads the JSON value of a line, or of a whole body.
pub(crate) fn read_value(bytes: &[u8]) -> Result<Value, Problem> {
    Ok(billing_json::read(bytes)?)
}

impl FromRequest for Body {
    type Error = Problem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = OptionalBody::from_request(request, payload);
        Box::pin(async move { body.await?.0.map(Body).ok_or_else(empty) })
    }
}

impl FromRequest for UnauthenticatedBody {
    type Error = Problem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = json(request, payload, STRANGERS_BYTES);
        Box::pin(async move { body.await?.map(UnauthenticatedBody).ok_or_else(empty) })
    }
}

fn empty() -> Problem {
    Problem::malformed("malformed_json", "the body is empty; it must be a JSON value")
}

impl FromRequest for OptionalBody {
    type Error = Problem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let body = json(request, payload, state_of(request).settings().body_limit_bytes);
        Box::pin(async move { body.await.map(Self) })
    }
}

/// A JSON body of at most so many bytes, if there is one.
fn json(
    request: &HttpRequest,
    payload: &mut Payload,
    limit: usize,
) -> impl Future<Output = Result<Option<Value>, Problem>> + 'static {
    let sent = IncomingBody::of(request, payload, limit, Problem::too_large);
    async move {
        let sent = sent.await?;
        let of_type = check_type(&sent.request);
        let bytes = sent.read().await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        of_type?;
        Ok(Some(billing_json::read(&bytes)?))
    }
}

impl FromRequest for BatchPayload {
    type Error = Problem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let limit = state_of(request).settings().batch_limit_bytes;
        let sent = IncomingBody::of(request, payload, limit, Problem::too_large);
        Box::pin(async move {
            let sent = sent.await?;
            match media_type(&sent.request) {
                Some(NDJSON) => Ok(Self::Lines(Lines::new(sent.payload, limit, RequestContext::of(&sent.request).deadline))),
                Some(JSON) => Ok(Self::Whole(sent.read().await?)),
                _ => Err(Problem::unsupported_media_type(
                    "the body must be of the type application/json or application/x-ndjson, in UTF-8",
                )),
            }
        })
    }
}

/// A body that is on its way, and that its head doesn't speak against.
struct IncomingBody {
    request: HttpRequest,
    payload: web::Payload,
    limit: usize,
    /// How a longer one is refused.
    too_large: fn(usize) -> Problem,
}

impl IncomingBody {
    /// Refuses a body by what its head says of it.
    fn of(
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
            if header(&request, &CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
                return Err(Problem::unsupported_media_type("compressed bodies are not taken"));
            }
            Ok(Self { request, payload, limit, too_large })
        }
    }

    /// The whole of it, if it arrives in time.
    async fn read(self) -> Result<web::Bytes, Problem> {
        let deadline = RequestContext::of(&self.request).body_deadline();
        match tokio::time::timeout_at(deadline, self.payload.to_bytes_limited(self.limit)).await {
            Ok(Ok(Ok(bytes))) => Ok(bytes),
            Ok(Ok(Err(_))) => Err(Problem::incomplete_body()),
            Ok(Err(_)) => Err((self.too_large)(self.limit)),
            Err(_) => Err(Problem::request_timeout()),
        }
    }
}

/// Only JSON: what a form on a foreign page can send without asking is not.
fn check_type(request: &HttpRequest) -> Result<(), Problem> {
    if media_type(request) == Some(JSON) {
        return Ok(());
    }
    Err(Problem::unsupported_media_type("the body must be of the type application/json, in UTF-8"))
}

/// Which of the types that are taken a body has.
fn media_type(request: &HttpRequest) -> Option<&'static str> {
    let (essence, parameters) =
        header(request, &CONTENT_TYPE).map_or(("", ""), |text| text.split_once(';').unwrap_or((text, "")));
    let parameters = parameters.to_ascii_lowercase().replace('"', "");
    let is_taken = |parameter: &str| matches!(parameter.trim(), "" | "charset=utf-8" | "charset=utf8" | "header=present");
    let known = |known: &&str| essence.trim().eq_ignore_ascii_case(known) && parameters.split(';').all(is_taken);
    [JSON, NDJSON, CSV].into_iter().find(known)
}

fn header<'a>(request: &'a HttpRequest, name: &actix_web::http::header::HeaderName) -> Option<&'a str> {
    // A value that isn't text is none of those that are taken.
    request.headers().get(name).map(|value| value.to_str().unwrap_or("not text"))
}
