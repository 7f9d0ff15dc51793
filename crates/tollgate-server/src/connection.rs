//! One connection, from the first byte to the last.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CONNECTION, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Version, body::Incoming};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::sleep;

use crate::daemon::Daemon;
use crate::http;
use crate::metrics::{self, Cut, Listener};
use crate::pulse::{Pulse, Verdict, Watched};

/// The most bytes of a request's head.
const MOST_HEAD: u32 = 32 * 1024;
/// How often a silent HTTP/2 peer is asked whether it is there, and how long it has to answer.
const PING: Duration = Duration::from_secs(20);
/// The most requests of an HTTP/2 connection at a time.
const MOST_STREAMS: u32 = 256;
/// How long a connection must have been idle to be closed while stopping: whoever has just been
/// answered may be sending its next request, and would not learn what became of it.
const IDLE_TO_CLOSE: Duration = Duration::from_secs(1);

/// What all connections are served with.
pub(crate) fn protocol() -> auto::Builder<TokioExecutor> {
    let mut protocol = auto::Builder::new(TokioExecutor::new());
    let max_buffer = usize::try_from(MOST_HEAD).unwrap_or(usize::MAX);
    // Hyper would hold idle connections to its time for heads too; `Pulse` tells them apart.
    protocol.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(max_buffer);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_STREAMS)
        .max_header_list_size(MOST_HEAD)
        .initial_stream_window_size(64 * 1024)
        .initial_connection_window_size(256 * 1024)
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING);
    protocol
}

/// Serves a connection until its peer leaves, dawdles, or the daemon stops.
pub(crate) async fn serve(
    stream: TcpStream,
    peer: SocketAddr,
    daemon: Arc<Daemon>,
    listener: Listener,
    protocol: Arc<auto::Builder<TokioExecutor>>,
    mut stop: watch::Receiver<bool>,
) {
    let pulse = Arc::new(Pulse::new(daemon.clock.clone()));
    let io = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
    let service = service_fn(|request| {
        let (daemon, busy) = (Arc::clone(&daemon), pulse.begin());
        async move {
            let reply = answer(&daemon, listener, peer, request).await;
            drop(busy);
            Ok::<_, Infallible>(reply)
        }
    });
    let mut connection = pin!(protocol.serve_connection(io, service));
    let mut stopped = pin!(stop.wait_for(|it| *it));
    let mut alarm = pin!(sleep(Duration::ZERO));
    let (mut stopping, mut closing) = (false, false);
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                return ended.unwrap_or_else(|it| {
                    daemon.metrics.traffic(listener).cut(Cut::Failed);
                    tracing::debug!(%peer, "connection failed: {it}");
                });
            }
            _ = stopped.as_mut(), if !stopping => stopping = true,
            () = alarm.as_mut() => {}
        }
        match pulse.verdict(&daemon.live().bounds, daemon.is_crowded()) {
            Verdict::Wait(time) if stopping => alarm.set(sleep(time.min(IDLE_TO_CLOSE / 4))),
            Verdict::Wait(time) => alarm.set(sleep(time)),
            // A peer that is not there any more would hold up a polite end.
            Verdict::Overdue => {
                daemon.metrics.traffic(listener).cut(Cut::Overdue);
                return tracing::debug!(%peer, "connection overdue");
            }
        }
        let idle = pulse.idle().is_some_and(|it| it >= IDLE_TO_CLOSE);
        if stopping && !closing && (idle || pulse.is_http2()) {
            closing = true;
            connection.as_mut().graceful_shutdown();
        }
    }
}

/// Answers a request; while stopping, as the last of its connection.
async fn answer(
    daemon: &Daemon,
    listener: Listener,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> http::Reply {
    let version = request.version();
    let mut reply = match listener {
        Listener::Http => http::answer(daemon, peer, request).await,
        Listener::Metrics => metrics::answer(daemon, &request),
    };
    if daemon.is_draining() && version <= Version::HTTP_11 {
        reply.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}
