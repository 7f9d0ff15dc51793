//! The service.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tokio::time::Sleep;
use tollgate::task::{BoxFuture, Completed};
use tower_service::Service;

use crate::admission::{Admission, InFlight};
use crate::body::ResponseBody;
use crate::decide::{Verdict, decide};
use crate::layer::Config;
use crate::rejection;

/// A service that passes admitted requests to an inner service. [`RateLimitLayer`] creates it.
///
/// A rejection is a response, never an error: the only errors are those of the inner service. The
/// inner service is ready before the decision is made, and is called only for an admitted request.
///
/// [`RateLimitLayer`]: crate::RateLimitLayer
#[derive(Clone, Debug)]
pub struct RateLimit<S> {
    inner: S,
    config: Arc<Config>,
}

impl<S> RateLimit<S> {
    pub(crate) fn with_config(inner: S, config: Arc<Config>) -> Self {
        RateLimit { inner, config }
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub fn get_mut(&mut self) -> &mut S {
        &mut self.inner
    }

    /// The inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Q, R> Service<Request<Q>> for RateLimit<S>
where
    S: Service<Request<Q>, Response = Response<R>> + Clone,
    R: Body,
    R::Data: From<Bytes>,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, S::Future, Q, R>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        // The clone may not be ready: the service that is must be the one that is called.
        let clone = self.inner.clone();
        let ready = std::mem::replace(&mut self.inner, clone);
        let (parts, body) = request.into_parts();
        let config = Arc::clone(&self.config);
        let deciding = async move {
            let verdict = decide(config, &parts).await;
            (parts, verdict)
        };
        let state = State::Deciding { future: Box::pin(deciding), inner: Some((ready, body)) };
        ResponseFuture { config: Arc::clone(&self.config), state }
    }
}

#[cfg(feature = "tonic")]
impl<S: tonic::server::NamedService> tonic::server::NamedService for RateLimit<S> {
    const NAME: &'static str = S::NAME;
}

pin_project! {
    /// The response of a [`RateLimit`] service.
    pub struct ResponseFuture<S, F, Q, R> {
        config: Arc<Config>,
        #[pin]
        state: State<S, F, Q, R>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, F, Q, R> {
        Deciding { future: BoxFuture<(Parts, Verdict)>, inner: Option<(S, Q)> },
        Delayed { sleep: Pin<Box<Sleep>>, call: Option<(S, Request<Q>, InFlight)> },
        Calling { #[pin] future: F, in_flight: Option<InFlight> },
        Settling { settlement: Completed<()>, response: Option<Response<ResponseBody<R>>> },
        Finished,
    }
}

/// What to do after a decision.
enum Next<S, Q> {
    Call(S, Request<Q>, Option<InFlight>),
    Delay(Pin<Box<Sleep>>, S, Request<Q>, InFlight),
    Respond(Response<Bytes>),
}

fn after_decision<S, Q>(
    config: &Config,
    (mut parts, verdict): (Parts, Verdict),
    (inner, body): (S, Q),
) -> Next<S, Q> {
    match verdict {
        Verdict::Rejected(rejection) => {
            Next::Respond(rejection::response(config, &rejection, &parts))
        }
        Verdict::Unchecked => Next::Call(inner, Request::from_parts(parts, body), None),
        Verdict::Admitted(in_flight, delay) => {
            parts.extensions.insert(in_flight.admission().clone());
            let request = Request::from_parts(parts, body);
            if delay.is_zero() {
                Next::Call(inner, request, Some(in_flight))
            } else {
                let sleep = Box::pin(tokio::time::sleep(delay));
                Next::Delay(sleep, inner, request, in_flight)
            }
        }
    }
}

impl<S, F, Q, R, E> Future for ResponseFuture<S, F, Q, R>
where
    S: Service<Request<Q>, Response = Response<R>, Error = E, Future = F>,
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
    R::Data: From<Bytes>,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    #[expect(clippy::expect_used, reason = "each value is taken when its state is left")]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            let next = match this.state.as_mut().project() {
                StateProjection::Deciding { future, inner } => {
                    let decided = ready!(future.as_mut().poll(context));
                    let inner = inner.take().expect("the service was not called");
                    match after_decision(this.config, decided, inner) {
                        Next::Respond(response) => {
                            this.state.set(State::Finished);
                            return Poll::Ready(Ok(response.map(ResponseBody::full)));
                        }
                        Next::Delay(sleep, inner, request, in_flight) => {
                            State::Delayed { sleep, call: Some((inner, request, in_flight)) }
                        }
                        Next::Call(inner, request, in_flight) => call(inner, request, in_flight),
                    }
                }
                StateProjection::Delayed { sleep, call: delayed } => {
                    ready!(sleep.as_mut().poll(context));
                    let (inner, request, in_flight) =
                        delayed.take().expect("the service was not called");
                    call(inner, request, Some(in_flight))
                }
                StateProjection::Calling { future, in_flight } => {
                    let response = ready!(future.poll(context));
                    let in_flight = in_flight.take();
                    let finished =
                        response.map(|response| finish(this.config, response, in_flight));
                    match finished {
                        Ok((response, Some(settlement))) => {
                            State::Settling { settlement, response: Some(response) }
                        }
                        Ok((response, None)) => {
                            this.state.set(State::Finished);
                            return Poll::Ready(Ok(response));
                        }
                        Err(error) => {
                            this.state.set(State::Finished);
                            return Poll::Ready(Err(error));
                        }
                    }
                }
                StateProjection::Settling { settlement, response } => {
                    ready!(Pin::new(settlement).poll(context));
                    let response = response.take().expect("the response was not returned");
                    this.state.set(State::Finished);
                    return Poll::Ready(Ok(response));
                }
                StateProjection::Finished => unreachable!("the future is polled after its end"),
            };
            this.state.set(next);
        }
    }
}

fn call<S, Q, R>(
    mut inner: S,
    request: Request<Q>,
    mut in_flight: Option<InFlight>,
) -> State<S, S::Future, Q, R>
where
    S: Service<Request<Q>, Response = Response<R>>,
{
    if let Some(in_flight) = &mut in_flight {
        in_flight.call();
    }
    State::Calling { future: inner.call(request), in_flight }
}

/// Adds the headers of the decisions to a response, and the lease to its body.
fn finish<R: Body>(
    config: &Config,
    response: Response<R>,
    in_flight: Option<InFlight>,
) -> (Response<ResponseBody<R>>, Option<Completed<()>>) {
    let (mut parts, body) = response.into_parts();
    let Some(in_flight) = in_flight else {
        return (Response::from_parts(parts, ResponseBody::new(body, None)), None);
    };
    let (admission, settlement) = in_flight.finish(&parts);
    add_headers(config, &mut parts.headers, &admission);
    (Response::from_parts(parts, ResponseBody::new(body, Some(admission))), settlement)
}

const DRAFT_HEADERS: [HeaderName; 2] =
    [HeaderName::from_static("ratelimit"), HeaderName::from_static("ratelimit-policy")];

/// Adds the headers of the decisions to those that a layer further inside has written: the lists of
/// the draft get further items, and the headers that describe one limit are kept.
fn add_headers(config: &Config, headers: &mut HeaderMap, admission: &Admission) {
    let mut own = HeaderMap::new();
    tollgate_headers::write(&config.header_styles, &mut own, admission.own_decisions());
    for (name, value) in own.iter() {
        if DRAFT_HEADERS.contains(name) || !headers.contains_key(name) {
            headers.append(name, value.clone());
        }
    }
}

impl<S, F, Q, R> std::fmt::Debug for ResponseFuture<S, F, Q, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
