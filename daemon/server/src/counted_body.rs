//! Response bodies that count as unsent until the client has read them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::Response;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use pin_project_lite::pin_project;
use tollgate_envoy::MessageLen;
use tollgate_transport::{IdleTracker, Unsent};

use crate::services::Services;

/// Shorter bodies are not counted: HTTP/2 bounds their number.
const MIN_COUNTED: usize = 1024;
/// The length of the parts that a body is sent in: each that is read shows that the client reads.
const PART: usize = 16 * 1024;

pin_project! {
    /// A response body that counts as unsent until the client has read it. Under HTTP/2 a client
    /// can keep responses from being sent without filling the socket's buffers.
    #[derive(Debug)]
    pub(crate) struct CountedBody<B> {
        #[pin]
        body: B,
        rest: Bytes,
        unsent: Option<Arc<Unsent>>,
    }
}

impl<B: Body> CountedBody<B> {
    /// Counts the body of a response. Without space for it, the connection is closed.
    pub(crate) fn wrap(
        response: Response<B>,
        services: &Services,
        tracker: &Arc<IdleTracker>,
    ) -> Response<Self> {
        let limit = || services.engine.active().bounds.buffers;
        let unsent = body_len(&response).filter(|len| *len >= MIN_COUNTED).and_then(|len| {
            let unsent = Unsent::new(Arc::clone(tracker), &services.buffers, len, limit());
            if unsent.is_none() {
                services.buffers.report_refusal(limit(), services.engine.clock().now());
            }
            unsent.map(Arc::new)
        });
        response.map(|body| CountedBody { body, rest: Bytes::new(), unsent })
    }
}

/// The length of a body, unless it is a stream.
fn body_len<B: Body>(response: &Response<B>) -> Option<usize> {
    match response.extensions().get() {
        Some(MessageLen(len)) => Some(*len),
        None => {
            let len = response.body().size_hint().exact()?;
            Some(usize::try_from(len).unwrap_or(usize::MAX))
        }
    }
}

/// A part of a body.
struct Part {
    bytes: Bytes,
    unsent: Arc<Unsent>,
}

impl AsRef<[u8]> for Part {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.unsent.record_progress();
    }
}

impl<B: Body<Data = Bytes>> Body for CountedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let Some(unsent) = this.unsent else { return this.body.poll_frame(cx) };
        if this.rest.is_empty() {
            match ready!(this.body.poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => *this.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                end => return Poll::Ready(end),
            }
        }
        let bytes = this.rest.split_to(this.rest.len().min(PART));
        let part = Part { bytes, unsent: Arc::clone(unsent) };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let hint = self.body.size_hint();
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let mut all = SizeHint::new();
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all.set_lower(hint.lower().saturating_add(rest));
        all
    }
}
