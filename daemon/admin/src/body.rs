//! Response bodies: whole ones, and the event stream.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::Response;
use hyper::body::{Bytes, Frame, SizeHint};
use tollgate_engine::Engine;

use crate::watchers::Events;

/// A response of the admin listener.
pub type Reply = Response<Body>;

/// A response body.
#[derive(Debug)]
pub struct Body(Kind);

#[derive(Debug)]
enum Kind {
    Whole(Full<Bytes>),
    Events(Events, Arc<Engine>),
}

impl Body {
    pub(crate) fn events(events: Events, engine: Arc<Engine>) -> Self {
        Body(Kind::Events(events, engine))
    }
}

impl From<Full<Bytes>> for Body {
    fn from(body: Full<Bytes>) -> Self {
        Body(Kind::Whole(body))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().0 {
            Kind::Whole(body) => Pin::new(body).poll_frame(cx),
            Kind::Events(events, engine) => {
                events.poll_event(engine.clock().now(), cx).map(|event| event.map(Ok))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Whole(body) => body.is_end_stream(),
            Kind::Events(..) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Whole(body) => body.size_hint(),
            Kind::Events(..) => SizeHint::default(),
        }
    }
}
