//! Usage event files as request bodies, read whole.

use actix_web::dev::Payload;
use actix_web::web::Bytes;
use actix_web::{FromRequest, HttpRequest};
use billing_import::FileKind;

use super::{Extraction, IncomingBody, media_type};
use crate::respond::HttpProblem;
use crate::state::state_of;
use billing_api::media_type::{CSV, JSON, NDJSON, TSV};
use billing_api::problem::Problem;

/// An uploaded file.
pub(crate) struct UploadedFile {
    pub(crate) media_type: &'static str,
    /// File kind of the media type.
    pub(crate) kind: FileKind,
    pub(crate) bytes: Bytes,
}

impl FromRequest for UploadedFile {
    type Error = HttpProblem;
    type Future = Extraction<Self>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let limit = state_of(request).settings().batch_limit_bytes;
        let sent = IncomingBody::maybe_compressed(request, payload, limit, Problem::file_too_large);
        Box::pin(async move {
            let sent = sent.await?;
            let (media_type, kind) = match media_type(&sent.request) {
                Some(CSV) => (CSV, FileKind::Csv),
                Some(TSV) => (TSV, FileKind::Csv),
                Some(NDJSON) => (NDJSON, FileKind::Ndjson),
                Some(JSON) => (JSON, FileKind::Json),
                _ => {
                    let detail = "the body must be of the type text/csv with a line of column names, application/x-ndjson, or \
                                  application/json with an array, in UTF-8";
                    return Err(Problem::unsupported_media_type(detail).into());
                }
            };
            Ok(Self { media_type, kind, bytes: sent.read().await? })
        })
    }
}
