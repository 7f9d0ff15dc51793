//! Response bodies, which may be endless streams.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Bytes, Frame, SizeHint};
use pin_project_lite::pin_project;
use tonic::Status;

use tollgate_transport::BusyGuard;

pin_project! {
    /// A response body. Until it ends, its connection is not idle.
    #[derive(Debug)]
    pub struct Body {
        #[pin]
        body: tonic::body::Body,
        busy: Option<BusyGuard>,
    }
}

impl Body {
    pub(super) fn new(body: tonic::body::Body, busy: Option<BusyGuard>) -> Self {
        Body { body, busy }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
