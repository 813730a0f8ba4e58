//! A response and its body, whatever the body is made of: bytes, frames of another body, or a stream of chunks.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::{Stream, TryStreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame, SizeHint};

pub type Response = http::Response<Body>;

/// Why a body broke off.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

pub struct Body(UnsyncBoxBody<Bytes, BodyError>);

impl Body {
    pub fn new(body: impl hyper::body::Body<Data = Bytes, Error: Into<BodyError>> + Send + 'static) -> Body {
        Body(body.map_err(Into::into).boxed_unsync())
    }

    pub fn empty() -> Body {
        Body::from(Bytes::new())
    }

    /// Chunks as they come; an error breaks it off.
    pub fn from_stream<E: Into<BodyError> + 'static>(
        chunks: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ) -> Body {
        Body(StreamBody::new(chunks.map_ok(Frame::data).map_err(Into::into)).boxed_unsync())
    }
}

impl<T: Into<Bytes>> From<T> for Body {
    fn from(whole: T) -> Body {
        Body::new(Full::new(whole.into()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}
