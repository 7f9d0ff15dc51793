//! Serving the connections of a listener.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Either;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::time::sleep;
use tollgate_engine::{Closure, Engine, ListenerKind, PeerAddress, Remote};

use crate::counted_body::CountedBody;
use crate::router;
use crate::services::Services;
use tollgate_envoy::GrpcConnection;
use tollgate_transport::{
    ConnectionLimiter, ConnectionLimits, IdleStatus, IdleTracker, ListenAddress, Stream,
    TrackedStream,
};

/// The longest head of a request in bytes. Under HTTP/2 a head of more than five CONTINUATION
/// frames, which is a quarter more, closes the connection.
const MAX_HEAD_LEN: u32 = 32 * 1024;
const MAX_HEAD_BUFFER: usize = 32 * 1024;
/// The interval of HTTP/2 pings on a silent connection, and their timeout.
const PING: Duration = Duration::from_secs(20);
/// The most concurrent requests of an HTTP/2 connection.
const MAX_STREAMS: u32 = 256;
/// The most requests of an HTTP/2 connection that its client resets before they are accepted; one
/// more closes the connection (CVE-2023-44487).
const MAX_PENDING_RESETS: usize = 20;
/// The most invalid requests of an HTTP/2 connection; one more closes it.
const MAX_ERROR_RESETS: usize = 128;
/// The time for requests in flight on a connection that has reached its maximum age.
const FINISH_TIMEOUT: Duration = Duration::from_secs(60);
/// The idle time after which a connection is closed while the daemon stops. A client that has just
/// got a response may be sending its next request.
const IDLE_TO_CLOSE: Duration = Duration::from_secs(1);

/// Serves the connections of a listener.
#[derive(Debug)]
pub(crate) struct Serving {
    services: Arc<Services>,
    kind: ListenerKind,
    is_on_loopback: bool,
    protocol: auto::Builder<TokioExecutor>,
}

impl Serving {
    /// Serves a listener at this address.
    pub(crate) fn new(
        services: Arc<Services>,
        kind: ListenerKind,
        address: &ListenAddress,
    ) -> Self {
        let is_on_loopback = match address {
            ListenAddress::Tcp(address) => address.ip().to_canonical().is_loopback(),
            ListenAddress::Unix(_) => false,
        };
        Serving { services, kind, is_on_loopback, protocol: protocol() }
    }

    /// Whether the listener is on a loopback address.
    pub(crate) fn is_on_loopback(&self) -> bool {
        self.is_on_loopback
    }

    fn engine(&self) -> &Engine {
        &self.services.engine
    }

    pub(crate) fn connections(&self) -> &Arc<ConnectionLimiter> {
        self.services.connections.get(self.kind)
    }

    /// Counts connections that the client did not close itself.
    #[expect(clippy::expect_used, reason = "a usize has at most 64 bits")]
    pub(crate) fn count_closures(&self, number: usize, reason: Closure) {
        let number = u64::try_from(number).expect("a usize fits");
        self.engine().counters.listener(self.kind).count_closures(number, reason);
    }

    fn limits(&self) -> ConnectionLimits {
        // The other listeners have no tokens.
        let authenticates = !matches!(self.kind, ListenerKind::Metrics | ListenerKind::Debug);
        let active = self.engine().active();
        let has_tokens = authenticates && !active.access.is_open();
        ConnectionLimits { total: active.bounds.connections, has_tokens }
    }

    /// Whether an address may open another connection.
    pub(crate) fn admits(&self, peer: PeerAddress) -> bool {
        let limit = self.engine().active().bounds.peer_connections;
        self.connections().admits(peer, limit, self.engine().clock().now())
    }

    pub(crate) fn is_full(&self) -> bool {
        self.connections().is_full(&self.limits())
    }

    /// Waits until there are fewer connections than the limits, which a reload may change.
    pub(crate) async fn wait_for_connection_limit(&self) {
        self.connections().wait(|| self.limits()).await;
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        self.engine().active().bounds.header_timeout
    }

    /// The tracker of a new connection.
    pub(crate) fn new_tracker(&self) -> IdleTracker {
        self.connections().new_tracker(self.engine().clock().clone())
    }

    /// Serves a connection until the client closes it, a timeout expires, it is evicted, or the
    /// daemon stops.
    pub(crate) async fn serve(&self, stream: Stream, remote: Remote, tracker: Arc<IdleTracker>) {
        let services = &self.services;
        match self.kind {
            ListenerKind::Resp => {
                let (engine, lifecycle) = (&services.engine, &services.lifecycle);
                tollgate_resp::serve(engine, &services.resp, lifecycle, stream, remote, tracker)
                    .await;
            }
            ListenerKind::Http
            | ListenerKind::Grpc
            | ListenerKind::Metrics
            | ListenerKind::Debug
            | ListenerKind::Admin => self.serve_http(stream, remote, tracker).await,
        }
    }

    /// The state of a gRPC connection.
    fn grpc(&self, remote: &Arc<Remote>) -> Option<Arc<GrpcConnection>> {
        (self.kind == ListenerKind::Grpc).then(|| {
            Arc::new(GrpcConnection::new(
                Arc::clone(&self.services.engine),
                Arc::clone(&self.services.envoy),
                Arc::clone(&self.services.lifecycle),
                Arc::clone(remote),
            ))
        })
    }

    /// The maximum age of a gRPC connection, reduced by a random part of up to a tenth, so that
    /// connections that began together do not end together.
    fn max_age(&self) -> Duration {
        let max_age = self.engine().active().bounds.connection_age;
        let mut random = [0; 2];
        // Without randomness connections may end together, which is no error.
        let _ = getrandom::fill(&mut random);
        let fraction = u32::from(u16::from_ne_bytes(random));
        max_age - (max_age / 10).saturating_mul(fraction) / u32::from(u16::MAX)
    }

    async fn serve_http(&self, stream: Stream, remote: Remote, tracker: Arc<IdleTracker>) {
        let io = TokioIo::new(TrackedStream::new(stream, Arc::clone(&tracker)));
        let (remote, kind) = (Arc::new(remote), self.kind);
        let grpc = self.grpc(&remote);
        let service = service_fn(|request| {
            let (services, remote) = (Arc::clone(&self.services), Arc::clone(&remote));
            let (grpc, busy) = (grpc.clone(), tracker.begin_request());
            let tracker = Arc::clone(&tracker);
            async move {
                tracker.wait_until_sent(|| services.engine.active().bounds.output).await;
                let reply = match grpc {
                    Some(grpc) => grpc.answer(request, busy).await.map(Either::Right),
                    None => {
                        let reply = router::answer(&services, kind, &remote, request, busy).await;
                        reply.map(Either::Left)
                    }
                };
                Ok::<_, Infallible>(CountedBody::wrap(reply, &services, &tracker))
            }
        });
        let mut connection = pin!(self.protocol.serve_connection(io, service));
        let mut timer = pin!(sleep(Duration::ZERO));
        let max_age = if grpc.is_some() { self.max_age() } else { Duration::MAX };
        let mut age_timer = pin!(sleep(max_age));
        let (mut is_closing, mut is_old) = (false, false);
        loop {
            tokio::select! {
                biased;
                result = connection.as_mut() => {
                    return result.unwrap_or_else(|error| {
                        self.count_closures(1, Closure::Failed);
                        tracing::debug!(%remote, "connection failed: {error}");
                    });
                }
                () = tracker.notified() => {}
                () = timer.as_mut() => {}
                () = age_timer.as_mut(), if grpc.is_some() => {
                    if is_old {
                        // Requests in flight do not end: the client does not read responses.
                        self.count_closures(1, Closure::Overdue);
                        return tracing::debug!(%remote, "connection exceeded its maximum age");
                    }
                    is_old = !grpc.as_ref().is_some_and(|grpc| grpc.has_quotas());
                    age_timer.set(sleep(if is_old { FINISH_TIMEOUT } else { self.max_age() }));
                }
            }
            let is_stopping = self.services.lifecycle.is_closing();
            match tracker.status(&self.engine().active().bounds) {
                IdleStatus::Wait(time) if is_stopping => {
                    timer.set(sleep(time.min(IDLE_TO_CLOSE / 4)));
                }
                IdleStatus::Wait(time) => timer.set(sleep(time)),
                // A graceful shutdown would wait for a client that does not respond.
                IdleStatus::Overdue => {
                    self.count_closures(1, Closure::Overdue);
                    return tracing::debug!(%remote, "connection overdue");
                }
                IdleStatus::Evicted => return tracing::debug!(%remote, "connection evicted"),
            }
            let is_idle = tracker.idle().is_some_and(|idle| idle >= IDLE_TO_CLOSE);
            if !is_closing && (is_old || is_stopping && (is_idle || tracker.is_http2())) {
                is_closing = true;
                if let Some(grpc) = &grpc {
                    grpc.close();
                }
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The settings of HTTP.
fn protocol() -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    // Hyper would apply the header timeout to idle connections too; `IdleTracker` distinguishes
    // them.
    protocol
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(MAX_HEAD_BUFFER);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_LEN)
        .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .initial_stream_window_size(64 * 1024)
        .initial_connection_window_size(256 * 1024)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    protocol
}
