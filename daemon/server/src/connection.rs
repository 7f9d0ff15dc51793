//! Serving one connection over HTTP.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Either;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Version, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::time::sleep;

use crate::daemon::Daemon;
use crate::http;
use crate::listener::{Places, Remote, Stream};
use crate::metrics::Cut;
use crate::pulse::{Pulse, Verdict, Watched};
use crate::resp;
use crate::rls;
use crate::role::Role;

/// The maximum size of a request head, in bytes. Under HTTP/2, a head in more than five
/// CONTINUATION frames also closes the connection: that many fit the limit, plus a quarter.
const MAX_HEAD_LEN: u32 = 32 * 1024;
/// The interval of HTTP/2 pings on a silent connection, and the timeout of each.
const PING: Duration = Duration::from_secs(20);
/// The maximum number of concurrent requests on an HTTP/2 connection.
const MAX_STREAMS: u32 = 256;
/// The maximum number of requests on an HTTP/2 connection that the peer reset before they were
/// started. One more closes the connection: a rapid reset attack (CVE-2023-44487).
const MAX_RECLAIMED: usize = 20;
/// The maximum number of malformed requests on an HTTP/2 connection; one more closes it.
const MAX_REFUSED: usize = 128;
/// How long requests in flight may take on a connection that has reached its maximum age.
const TO_FINISH: Duration = Duration::from_secs(60);
/// How long a connection must have been idle to be closed while the daemon stops. A client that has
/// just received a response may be sending its next request.
const IDLE_TO_CLOSE: Duration = Duration::from_secs(1);

/// The state that all connections of a listener share.
#[derive(Debug)]
pub(crate) struct Serving {
    daemon: Arc<Daemon>,
    role: Role,
    protocol: auto::Builder<TokioExecutor>,
}

impl Serving {
    pub(crate) fn new(daemon: Arc<Daemon>, role: Role) -> Self {
        Serving { daemon, role, protocol: protocol() }
    }

    pub(crate) fn places(&self) -> &Arc<Places> {
        self.daemon.places(self.role)
    }

    /// Counts connections that the daemon closed.
    pub(crate) fn cut(&self, many: usize, why: Cut) {
        let many = u64::try_from(many).unwrap_or(u64::MAX);
        self.daemon.metrics.traffic(self.role).cuts(many, why);
    }

    pub(crate) fn has_place(&self) -> bool {
        self.places().count() < self.daemon.live().bounds.connections
    }

    /// Waits until the number of connections is below the limit, which a reload may change.
    pub(crate) async fn wait_for_place(&self) {
        self.places().wait(|| self.daemon.live().bounds.connections).await;
    }

    pub(crate) fn header_timeout(&self) -> Duration {
        self.daemon.live().bounds.header_timeout
    }

    /// The idle tracker for a new connection.
    pub(crate) fn pulse(&self) -> Pulse {
        Pulse::new(self.daemon.clock.clone())
    }

    /// Serves a connection until the peer leaves, a timeout, an eviction, or the end of the daemon.
    pub(crate) async fn serve(&self, stream: Stream, remote: Remote, pulse: Arc<Pulse>) {
        match self.role {
            Role::Resp => resp::serve(&self.daemon, stream, remote, pulse).await,
            Role::Http | Role::Grpc | Role::Metrics | Role::Debug => {
                self.serve_http(stream, remote, pulse).await
            }
        }
    }

    /// The peer of a gRPC connection; `None` for other protocols.
    fn grpc(&self, remote: &Arc<Remote>) -> Option<Arc<rls::Peer>> {
        let peer = || rls::Peer::new(Arc::clone(&self.daemon), Arc::clone(remote));
        (self.role == Role::Grpc).then(|| Arc::new(peer()))
    }

    /// The maximum age of a gRPC connection: the configured age minus a random part of up to 10 %,
    /// so that connections that were opened together do not end together.
    fn age(&self) -> Duration {
        let most = self.daemon.live().bounds.connection_age;
        let mut drawn = [0; 2];
        // Without randomness all connections get the same age, which is harmless.
        let _ = getrandom::fill(&mut drawn);
        let tenths = u32::from(u16::from_ne_bytes(drawn));
        most - (most / 10).saturating_mul(tenths) / u32::from(u16::MAX)
    }

    async fn serve_http(&self, stream: Stream, remote: Remote, pulse: Arc<Pulse>) {
        let io = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
        let (remote, role) = (Arc::new(remote), self.role);
        let grpc = self.grpc(&remote);
        let service = service_fn(|request| {
            let (daemon, remote) = (Arc::clone(&self.daemon), Arc::clone(&remote));
            let (grpc, busy) = (grpc.clone(), pulse.begin());
            async move {
                if let Some(peer) = grpc {
                    return Ok(peer.answer(request, busy).await.map(Either::Right));
                }
                let reply = answer(&daemon, role, &remote, request).await;
                drop(busy);
                Ok::<_, Infallible>(reply.map(Either::Left))
            }
        });
        let mut connection = pin!(self.protocol.serve_connection(io, service));
        let mut alarm = pin!(sleep(Duration::ZERO));
        let age = if grpc.is_some() { self.age() } else { Duration::MAX };
        let mut renewal = pin!(sleep(age));
        let (mut closing, mut is_old) = (false, false);
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    return ended.unwrap_or_else(|it| {
                        self.cut(1, Cut::Failed);
                        tracing::debug!(%remote, "connection failed: {it}");
                    });
                }
                () = pulse.nudged() => {}
                () = alarm.as_mut() => {}
                () = renewal.as_mut(), if grpc.is_some() => {
                    if is_old {
                        // A request in flight does not end, because its peer does not read it.
                        self.cut(1, Cut::Overdue);
                        return tracing::debug!(%remote, "connection past its maximum age");
                    }
                    is_old = true;
                    renewal.set(sleep(TO_FINISH));
                }
            }
            let stopping = self.daemon.is_closing();
            match pulse.verdict(&self.daemon.live().bounds) {
                Verdict::Wait(time) if stopping => alarm.set(sleep(time.min(IDLE_TO_CLOSE / 4))),
                Verdict::Wait(time) => alarm.set(sleep(time)),
                // A graceful shutdown would wait for a peer that may be gone.
                Verdict::Overdue => {
                    self.cut(1, Cut::Overdue);
                    return tracing::debug!(%remote, "connection overdue");
                }
                Verdict::Evicted => return tracing::debug!(%remote, "connection evicted"),
            }
            let idle = pulse.idle().is_some_and(|idle| idle >= IDLE_TO_CLOSE);
            if !closing && (is_old || stopping && (idle || pulse.is_http2())) {
                closing = true;
                grpc.iter().for_each(|grpc| grpc.end());
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The HTTP configuration of all connections.
fn protocol() -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    let max_buffer = usize::try_from(MAX_HEAD_LEN).unwrap_or(usize::MAX);
    // The timeout of hyper would also apply to idle connections; `Pulse` distinguishes them.
    protocol.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(max_buffer);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_LEN)
        .max_pending_accept_reset_streams(MAX_RECLAIMED)
        .max_local_error_reset_streams(MAX_REFUSED)
        .initial_stream_window_size(64 * 1024)
        .initial_connection_window_size(256 * 1024)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    protocol
}

/// Answers a request. While the daemon stops, the response closes an HTTP/1 connection.
async fn answer(
    daemon: &Daemon,
    role: Role,
    remote: &Remote,
    request: Request<Incoming>,
) -> http::Reply {
    let version = request.version();
    let mut reply = role.answer(daemon, remote, request).await;
    if daemon.is_closing() && version <= Version::HTTP_11 {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}
