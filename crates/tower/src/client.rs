//! The layer of a client: spends before it sends, and obeys the upstream's headers.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tollgate::{Cost, Denied, KeyBuf, Limiter, Permit, Policy, Reason, StoreError, Timestamp};
use tollgate_headers::upstream_wait;
use tower_layer::Layer;
use tower_service::Service;

use crate::body::poll_guarded;
use crate::layer::{ReportError, report_error};
use crate::rule::{FromHead, UnnamedPolicy};

const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(30);
const DEFAULT_MAX_PAUSE: Duration = Duration::from_secs(3600);

/// A layer for clients, such as `hyper_util::client::legacy::Client`: each request is charged before it
/// is sent, and waits until the policy admits it.
///
/// Afterwards the layer reads the response: if the upstream asks for a pause by `Retry-After` with the
/// status 429 or 503, or if its `RateLimit` or `X-RateLimit-*` headers say that nothing remains, the key
/// is blocked for that time, in all processes that share the limiter's store. The response is returned
/// as it is; a layer outside can repeat the request, which then waits for the end of the pause.
///
/// A slot of a concurrency limit is held until the body of the response has ended.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use tollgate::{Limiter, Policy};
/// use tollgate_tower::ClientRateLimitLayer;
///
/// // At most 50 requests a second to each host, and 10 in flight.
/// let policy = Policy::named("outbound", "50/s; 10 concurrent lease 60s")?;
/// let layer = ClientRateLimitLayer::new(Limiter::memory(), policy)
///     .max_wait(Duration::from_secs(5));
/// # Ok::<(), tollgate::PolicyError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct ClientRateLimitLayer(Arc<Config>);

#[derive(Clone)]
struct Config {
    limiter: Limiter,
    policy: Policy,
    key: FromHead<KeyBuf>,
    cost: FromHead<Cost>,
    max_wait: Duration,
    max_pause: Duration,
    on_error: ReportError,
}

impl ClientRateLimitLayer {
    /// Creates a layer with one policy, whose key is the host and port of each request.
    ///
    /// # Panics
    /// Panics if the policy has no [name](Policy::is_named).
    pub fn new(limiter: impl Into<Limiter>, policy: Policy) -> Self {
        assert!(policy.is_named(), "{}", UnnamedPolicy(policy));
        ClientRateLimitLayer(Arc::new(Config {
            limiter: limiter.into(),
            policy,
            key: Arc::new(host),
            cost: Arc::new(|_| Cost::ONE),
            max_wait: DEFAULT_MAX_WAIT,
            max_pause: DEFAULT_MAX_PAUSE,
            on_error: report_error(|_| ()),
        }))
    }

    fn change(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    /// Sets the key of each request, such as the account at the upstream.
    pub fn key(self, key: impl Fn(&Parts) -> KeyBuf + Send + Sync + 'static) -> Self {
        self.change(|config| config.key = Arc::new(key))
    }

    /// Sets the cost of each request; it is 1 by default.
    pub fn cost(self, cost: impl Fn(&Parts) -> Cost + Send + Sync + 'static) -> Self {
        self.change(|config| config.cost = Arc::new(cost))
    }

    /// Sets the longest time that a request waits; the default is 30 s. A request that would have to
    /// wait longer fails at once with [`ClientError::Denied`].
    pub fn max_wait(self, wait: Duration) -> Self {
        self.change(|config| config.max_wait = wait)
    }

    /// Sets the longest pause that an upstream can impose; the default is an hour.
    pub fn max_pause(self, pause: Duration) -> Self {
        self.change(|config| config.max_pause = pause)
    }

    /// Calls a function with each error of the store after a request was admitted: when its key is blocked
    /// for a pause, or when its lease is renewed or released.
    pub fn on_error(self, report: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        self.change(|config| config.on_error = report_error(report))
    }
}

/// The host and port of a request.
fn host(parts: &Parts) -> KeyBuf {
    match (parts.uri.host(), parts.uri.port_u16()) {
        (Some(host), Some(port)) => KeyBuf::display(format_args!("{host}:{port}")),
        (Some(host), None) => KeyBuf::from(host),
        (None, _) => {
            let host = parts.headers.get(http::header::HOST);
            KeyBuf::from(host.map_or(&b""[..], |host| host.as_bytes()))
        }
    }
}

impl<S> Layer<S> for ClientRateLimitLayer {
    type Service = ClientRateLimit<S>;

    fn layer(&self, inner: S) -> ClientRateLimit<S> {
        ClientRateLimit { inner, config: Arc::clone(&self.0) }
    }
}

/// A client that limits its requests. [`ClientRateLimitLayer`] creates it.
#[derive(Clone, Debug)]
pub struct ClientRateLimit<S> {
    inner: S,
    config: Arc<Config>,
}

/// Why a request got no response.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError<E> {
    /// The policy does not admit it within the longest wait. It was not sent.
    Denied(Denied),
    /// The inner client failed.
    Client(E),
}

impl<E: fmt::Display> fmt::Display for ClientError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Denied(denied) => write!(f, "the request was not sent: {denied}"),
            ClientError::Client(error) => error.fmt(f),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for ClientError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Denied(_) => None,
            // The message is that of the inner error.
            ClientError::Client(error) => error.source(),
        }
    }
}

impl<S, Q, R> Service<Request<Q>> for ClientRateLimit<S>
where
    S: Service<Request<Q>, Response = Response<R>, Future: Send> + Clone + Send + 'static,
    S::Error: Send,
    Q: Send + 'static,
    R: Body + Send,
{
    type Response = Response<ClientBody<R>>;
    type Error = ClientError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context).map_err(ClientError::Client)
    }

    fn call(&mut self, request: Request<Q>) -> Self::Future {
        // The clone may not be ready: the service that is must be the one that is called.
        let clone = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, clone);
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let (key, cost) = ((config.key)(&parts), (config.cost)(&parts));
            let permit = config.limiter.until_allowed(&config.policy, &key, cost, config.max_wait);
            let permit = permit.await.map_err(ClientError::Denied)?;
            let permit = permit.on_error(Arc::clone(&config.on_error));
            let sent_at = Instant::now();
            let response = ready.call(Request::from_parts(parts, body)).await;
            let response = response.map_err(ClientError::Client)?;
            let admitted = &permit.decisions()[0];
            let now = admitted.time.saturating_add(admitted.delay);
            let now = now.saturating_add(sent_at.elapsed().into());
            config.pause(&key, now, response.status(), response.headers()).await;
            Ok(response.map(|body| {
                // A caller may never poll a body that is empty.
                let permit = Some(permit).filter(|_| !body.is_end_stream());
                ClientBody { body, permit }
            }))
        })
    }
}

impl Config {
    /// Blocks the key for as long as a response asks for, if it is not blocked for longer.
    async fn pause(&self, key: &KeyBuf, now: Timestamp, status: StatusCode, headers: &HeaderMap) {
        let Some(wait) = upstream_wait(status, headers, now) else { return };
        let wait = wait.min(self.max_pause);
        let current = self.limiter.peek(&self.policy, key, Cost::ONE).await;
        let is_longer = current.retry_after.is_none_or(|end| Duration::from(end) >= wait);
        if current.reason == Reason::Blocked && is_longer {
            return;
        }
        if let Err(error) = self.limiter.block(&self.policy, key, Some(wait)).await {
            (self.on_error)(&error);
        }
    }
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("policy", &self.policy)
            .field("max_wait", &self.max_wait)
            .field("max_pause", &self.max_pause)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ClientRateLimitLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ClientRateLimitLayer").field(&self.0).finish()
    }
}

pin_project! {
    /// The body of a response. It holds a slot of a concurrency limit until it has ended or is dropped.
    #[derive(Debug)]
    pub struct ClientBody<B> {
        #[pin]
        body: B,
        permit: Option<Permit>,
    }
}

impl<B: Body> Body for ClientBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        poll_guarded(this.body, this.permit, context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
