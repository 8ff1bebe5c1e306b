//! Response bodies that are written while they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::web::Bytes;
use thiserror::Error;
use tokio::sync::mpsc;

pub(crate) enum Part {
    Bytes(Bytes),
    /// The body is complete.
    End,
}

/// The writer was dropped before the end of the body. The connection is broken, so that no client takes a part for the
/// whole.
#[derive(Debug, Error)]
#[error("the answer could not be finished")]
pub(crate) struct Unfinished;

/// A response body whose parts arrive through a channel.
pub(crate) struct ChannelBody(pub(crate) mpsc::UnboundedReceiver<Part>);

impl MessageBody for ChannelBody {
    type Error = Unfinished;

    fn size(&self) -> BodySize {
        BodySize::Stream
    }

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Unfinished>>> {
        self.0.poll_recv(context).map(|part| match part {
            Some(Part::Bytes(bytes)) => Some(Ok(bytes)),
            Some(Part::End) => None,
            None => Some(Err(Unfinished)),
        })
    }
}
