//! Texts that are the same in each response: the OpenAPI document and the pages of the API reference.
//!
//! A text is stored once, compressed. A response holds a reference to it and takes the next slice when the connection has sent the one
//! before. So a client that does not read its response costs one slice and not the whole text.

use std::convert::Infallible;
use std::io::{self, Read, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};

use actix_web::body::{BodySize, MessageBody};
use actix_web::http::header::{
    ACCEPT_ENCODING, AcceptEncoding, CONTENT_ENCODING, ContentEncoding, Encoding, Header as _, HeaderValue, VARY,
};
use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

/// The size of a slice in bytes.
const SLICE_BYTES: usize = 16 * 1024;

/// A text, compressed. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct StaticText {
    gzip: Bytes,
    /// The size of the text itself in bytes.
    size: u64,
}

impl StaticText {
    /// Compresses a text.
    pub(crate) fn new(text: &str) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let compressed = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
        let gzip = compressed.expect("writing to memory does not fail").into_boxed_slice().into();
        Self { gzip, size: text.len() as u64 }
    }

    /// Returns the response with the text, compressed if the client accepts that.
    pub(crate) fn respond(&self, request: &HttpRequest, mut response: HttpResponseBuilder) -> HttpResponse {
        response.insert_header((VARY, HeaderValue::from_name(ACCEPT_ENCODING)));
        if accepts_gzip(request) {
            response.insert_header((CONTENT_ENCODING, ContentEncoding::Gzip));
            return response.body(Compressed(self.gzip.clone()));
        }
        let decoder = GzDecoder::new(io::Cursor::new(self.gzip.clone()));
        response.body(Decompressed { decoder, rest: self.size, size: self.size })
    }
}

fn accepts_gzip(request: &HttpRequest) -> bool {
    let accepted = AcceptEncoding::parse(request).ok();
    // Without the header, the library prefers to send the text as it is.
    let chosen = accepted.and_then(|accepted| accepted.negotiate([Encoding::gzip(), Encoding::identity()].iter()));
    chosen == Some(Encoding::gzip())
}

/// The rest of a compressed text.
struct Compressed(Bytes);

impl MessageBody for Compressed {
    type Error = Infallible;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.0.len() as u64)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, Infallible>>> {
        let Self(rest) = self.get_mut();
        if rest.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(rest.split_to(rest.len().min(SLICE_BYTES)))))
    }
}

/// A text that is decompressed slice by slice, for clients that do not accept the compressed one.
struct Decompressed {
    decoder: GzDecoder<io::Cursor<Bytes>>,
    rest: u64,
    size: u64,
}

impl MessageBody for Decompressed {
    type Error = io::Error;

    fn size(&self) -> BodySize {
        BodySize::Sized(self.size)
    }

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let this = self.get_mut();
        let length = this.rest.min(SLICE_BYTES as u64);
        if length == 0 {
            return Poll::Ready(None);
        }
        this.rest -= length;
        let mut slice = Vec::with_capacity(SLICE_BYTES);
        let read = (&mut this.decoder).take(length).read_to_end(&mut slice);
        Poll::Ready(Some(read.map(|_| Bytes::from(slice))))
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use actix_web::body::BoxBody;
    use actix_web::test::TestRequest;

    use super::*;

    fn text() -> String {
        // Random enough that the compressed text has several slices, too.
        (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_string()).collect()
    }

    /// Returns the encoding, the size and the slices of a response.
    async fn sent(accepted: Option<&'static str>) -> (Option<String>, BodySize, Vec<Bytes>) {
        let text = StaticText::new(&text());
        let request = accepted
            .map_or_else(TestRequest::default, |accepted| TestRequest::default().insert_header((ACCEPT_ENCODING, accepted)));
        let response = text.respond(&request.to_http_request(), HttpResponse::Ok());
        assert_eq!(response.headers().get(VARY).expect("a header"), "accept-encoding");
        let encoding = response.headers().get(CONTENT_ENCODING).map(|encoding| encoding.to_str().expect("text").to_owned());
        let body: BoxBody = response.into_body();
        let (size, mut body, mut slices) = (body.size(), pin!(body), Vec::new());
        while let Some(slice) = poll_fn(|context| body.as_mut().poll_next(context)).await {
            slices.push(slice.expect("a slice"));
        }
        (encoding, size, slices)
    }

    #[actix_web::test]
    async fn a_text_is_sent_in_slices_compressed_or_not() {
        for accepted in [None, Some("identity"), Some("br"), Some("gzip;q=0"), Some("deflate, identity;q=0.5")] {
            let (encoding, size, slices) = sent(accepted).await;
            assert_eq!((encoding, size), (None, BodySize::Sized(text().len() as u64)), "{accepted:?}");
            assert_eq!(slices.concat(), text().as_bytes());
            assert!(slices.len() > 2 && slices.iter().all(|slice| slice.len() <= SLICE_BYTES));
        }
        for accepted in ["gzip", "gzip, deflate, br", "br;q=1.0, gzip;q=0.8"] {
            let (encoding, size, slices) = sent(Some(accepted)).await;
            assert_eq!(encoding.as_deref(), Some("gzip"), "{accepted}");
            let compressed = slices.concat();
            assert_eq!(size, BodySize::Sized(compressed.len() as u64));
            assert!(slices.len() > 2 && slices.iter().all(|slice| slice.len() <= SLICE_BYTES));
            let mut read = String::new();
            GzDecoder::new(compressed.as_slice()).read_to_string(&mut read).expect("a text");
            assert_eq!(read, text());
        }
    }

    #[test]
    fn responses_share_the_text() {
        let text = StaticText::new(&text());
        let Compressed(mut body) = Compressed(text.gzip.clone());
        assert_eq!(body.split_to(SLICE_BYTES).as_ptr(), text.gzip.as_ptr());
    }
}
