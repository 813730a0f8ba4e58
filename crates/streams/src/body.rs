//! The body of an answer: empty, bytes, or events that are sent as they are written.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

/// The body of a request, of whatever kind the server has.
pub trait Upload: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send {}

impl<B> Upload for B where B: http_body::Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send {}

/// A body that hyper can send.
pub struct Body(Kind);

enum Kind {
    Full(Option<Bytes>),
    Events { events: mpsc::Receiver<Events>, control: Option<Bytes>, cut: Arc<AtomicBool> },
}

/// What a reader of events is sent at once. The connection has the control event ready when it takes the data event, so that it
/// sends both in one write: a reader that gets data learns with it where to continue.
pub(crate) struct Events {
    pub data: Option<Bytes>,
    pub control: Bytes,
}

/// The reader did not take what was sent to it, and is cut off; its connection breaks rather than ends, so that it cannot
/// take what it has for everything.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the reader was too slow and was disconnected")]
pub struct Cut;

impl Body {
    pub fn empty() -> Self {
        Body(Kind::Full(None))
    }

    pub fn full(bytes: Bytes) -> Self {
        Body(Kind::Full((!bytes.is_empty()).then_some(bytes)))
    }

    /// Events as they come. When `cut` is set, the body breaks off in place of ending.
    pub(crate) fn events(events: mpsc::Receiver<Events>, cut: Arc<AtomicBool>) -> Self {
        Body(Kind::Events { events, control: None, cut })
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut self.0 {
            Kind::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Kind::Events { cut, .. } if cut.load(Ordering::Acquire) => Poll::Ready(Some(Err(Cut))),
            Kind::Events { events, control, .. } => {
                if let Some(control) = control.take() {
                    return Poll::Ready(Some(Ok(Frame::data(control))));
                }
                events.poll_recv(context).map(|next| {
                    let next = next?;
                    let Some(data) = next.data else { return Some(Ok(Frame::data(next.control))) };
                    *control = Some(next.control);
                    Some(Ok(Frame::data(data)))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Kind::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Kind::Events { .. } => SizeHint::default(),
        }
    }
}
