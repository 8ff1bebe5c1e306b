//! Request bodies that are not read to their end.
//!
//! When a chunked body is dropped, the HTTP library drains it for as long as the client sends. The connection would then
//! stay open without limit after the response. If the body is still held, the library closes the connection after the
//! response; so the response holds the body.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use actix_web::HttpMessage as _;
use actix_web::dev::{Payload, ServiceRequest};
use actix_web::error::PayloadError;
use actix_web::web::Bytes;
use futures_util::Stream;

/// A request's body, shared by its reader and the response. The response must hold it until it is sent.
#[derive(Clone)]
pub(crate) struct UndrainedBody(Rc<RefCell<Payload>>);

impl UndrainedBody {
    /// Takes the body of a request, if it has one.
    pub(crate) fn of(request: &mut ServiceRequest) -> Option<Self> {
        let payload = match request.take_payload() {
            Payload::None => return None,
            payload => payload,
        };
        let unread = Self(Rc::new(RefCell::new(payload)));
        request.set_payload(Payload::Stream { payload: Box::pin(unread.clone()) });
        Some(unread)
    }
}

impl Stream for UndrainedBody {
    type Item = Result<Bytes, PayloadError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        Pin::new(&mut *self.0.borrow_mut()).poll_next(context)
    }
}
