//! Values that exist until a response is sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::HttpResponse;
use actix_web::body::{BodySize, BoxBody, MessageBody};
use actix_web::web::Bytes;

/// Attaches a value to the body of a response. The value is dropped after the body, when the response is sent or abandoned.
pub(crate) fn hold_until_sent<T: Unpin + 'static>(value: T, response: HttpResponse<BoxBody>) -> HttpResponse<BoxBody> {
    response.map_body(|_, body| BoxBody::new(HoldingBody { body, _value: value }))
}

struct HoldingBody<T> {
    body: BoxBody,
    _value: T,
}

impl<T: Unpin + 'static> MessageBody for HoldingBody<T> {
    type Error = Box<dyn std::error::Error>;

    fn size(&self) -> BodySize {
        self.body.size()
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>> {
        Pin::new(&mut self.body).poll_next(context)
    }
}
