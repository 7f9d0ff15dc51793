//! A daemon without sockets for the fuzz targets of HTTP protocols: an engine in memory, the state
//! that it keeps, and the statuses that the OpenAPI document lists.

mod documented;

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::runtime::{Builder, Runtime};
use tollgate::{Inspection, Key, ManualClock, MemoryLimiter, Policy};
use tollgate_config::Config;
use tollgate_engine::{ActiveConfig, Engine, PeerAddress, Remote};
use tollgate_http::Reply;

pub use self::documented::statuses;

/// An engine on a small memory store whose clock stands still, and a client on this machine.
#[derive(Debug)]
pub struct Daemon {
    /// The engine.
    pub engine: Engine,
    /// The client.
    pub remote: Remote,
    limiter: MemoryLimiter,
}

/// What the store keeps.
#[derive(Debug, PartialEq, Eq)]
pub struct State {
    keys: usize,
    block_bytes: usize,
    inspections: Vec<Inspection>,
}

impl Daemon {
    /// A daemon with this configuration.
    pub fn new(config: &Config) -> Self {
        let limiter = MemoryLimiter::builder().clock(ManualClock::default()).max_keys(64).build();
        let active = ActiveConfig::new(config).expect("the tokens are valid");
        let remote = Remote::new(PeerAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))));
        Daemon { engine: Engine::new(active, limiter.clone().into()), remote, limiter }
    }

    /// The number of keys and blocks, and the state of these keys under these policies.
    pub fn state<'a>(&self, keys: impl IntoIterator<Item = (&'a Policy, &'a [u8])>) -> State {
        let stats = self.limiter.stats();
        let keys = keys.into_iter();
        let inspections = keys
            .filter_map(|(policy, key)| Some(self.limiter.inspect(policy, Key::new(key).ok()?)));
        State {
            keys: stats.keys,
            block_bytes: stats.block_bytes,
            inspections: inspections.collect(),
        }
    }
}

/// Runs a future that waits for nothing but its own timers.
pub fn block_on<F: Future>(future: F) -> F::Output {
    thread_local! {
        static RUNTIME: Runtime =
            Builder::new_current_thread().enable_time().build().expect("it needs no resources");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// Serves bytes that a client has sent on a connection of HTTP/1.1 before it closed its half.
pub fn serve(bytes: &[u8], answer: impl AsyncFn(Request<Incoming>) -> Reply) {
    let mut responses = Vec::new();
    let io = TokioIo::new(tokio::io::join(bytes, &mut responses));
    let answer = &answer;
    let service =
        service_fn(move |request| async move { Ok::<_, Infallible>(answer(request).await) });
    let mut protocol = http1::Builder::new();
    protocol.half_close(true).header_read_timeout(None);
    // An error is that of the client.
    let _ = block_on(protocol.serve_connection(io, service));
}

/// The body of a response.
pub async fn body(reply: &Reply) -> Bytes {
    let Ok(body) = reply.body().clone().collect().await;
    body.to_bytes()
}

/// A request of a client: its head, whose lines end in a line feed, an empty line and the body. The
/// head gets the length of the body.
pub fn request(text: &[u8]) -> Vec<u8> {
    let end = text.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((text, &b""[..]), |end| (&text[..end], &text[end + 2..]));
    let length = match body.len() {
        0 => String::new(),
        length => format!("\ncontent-length: {length}"),
    };
    [head, length.as_bytes(), b"\n\n", body].concat()
}
