//! The body of a response.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::admission::Admission;

pin_project! {
    /// The body of a response: that of the inner service, or that of a rejection.
    ///
    /// It holds the leases of concurrency limits until it has ended or is dropped.
    pub struct ResponseBody<B> {
        #[pin]
        inner: Inner<B>,
    }
}

pin_project! {
    #[project = InnerProjection]
    enum Inner<B> {
        Service { #[pin] body: B, admission: Option<Admission> },
        Full { bytes: Option<Bytes> },
    }
}

impl<B: Body> ResponseBody<B> {
    pub(crate) fn new(body: B, admission: Option<Admission>) -> Self {
        // A server may never poll a body that is empty.
        let admission = admission.filter(|_| !body.is_end_stream());
        ResponseBody { inner: Inner::Service { body, admission } }
    }

    pub(crate) fn full(bytes: Bytes) -> Self {
        ResponseBody { inner: Inner::Full { bytes: Some(bytes).filter(|x| !x.is_empty()) } }
    }
}

/// A polled frame of a body.
type PolledFrame<B> = Poll<Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>>;

/// Polls a body. Its last frame drops the guard before the receiver sees the frame, so that the next
/// request of the receiver finds the slot free.
pub(crate) fn poll_guarded<B: Body, G>(
    mut body: Pin<&mut B>,
    guard: &mut Option<G>,
    context: &mut Context<'_>,
) -> PolledFrame<B> {
    let frame = ready!(body.as_mut().poll_frame(context));
    if !matches!(frame, Some(Ok(_))) || body.is_end_stream() {
        *guard = None;
    }
    Poll::Ready(frame)
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match self.project().inner.project() {
            InnerProjection::Service { body, admission } => poll_guarded(body, admission, context),
            InnerProjection::Full { bytes } => {
                Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.inner {
            Inner::Service { body, .. } => body.is_end_stream(),
            Inner::Full { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.inner {
            Inner::Service { body, .. } => body.size_hint(),
            Inner::Full { bytes } => {
                let len = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(len).unwrap_or(u64::MAX))
            }
        }
    }
}

impl<B> std::fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}
