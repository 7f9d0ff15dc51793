//! What asks: HTTP/2 without more than gRPC needs, so that as much as can be of the time is the
//! server's.

use std::cell::{Cell, RefCell};
use std::net::Ipv4Addr;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use bench::figures::{Hundredths, number, per};
use bench::process::cpu_ns;
use bytes::{BufMut, Bytes, BytesMut};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use h2::client::SendRequest;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::{JoinSet, LocalSet};
use tollgate_store::Clock;

use crate::servers::Served;

const CONNECTIONS: usize = 10;
const STREAMS: usize = 20;

/// The requests, one for each key.
#[derive(Debug)]
pub(crate) struct Load {
    clock: Clock,
    messages: Vec<Bytes>,
    /// Which is next, at random, the same for every server.
    order: Vec<usize>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) a_second: u64,
    pub(crate) p50_us: u64,
    pub(crate) p99_us: u64,
    /// Of the server for each request.
    pub(crate) cpu_us: Hundredths,
}

/// How far a run is.
#[derive(Debug, Default)]
struct Progress {
    asked: Cell<usize>,
    took_us: RefCell<Vec<u64>>,
}

impl Load {
    pub(crate) fn new(keys: usize) -> Self {
        let messages = bench::keys(keys).into_iter().map(message).collect();
        let order = bench::uniform(keys, 1 << 17);
        Load { clock: Clock::system(), messages, order }
    }

    fn message(&self, at: usize) -> Bytes {
        let place = self.order.get(at % self.order.len().max(1)).copied().unwrap_or(0);
        self.messages.get(place).cloned().unwrap_or_default()
    }
}

/// A request as gRPC frames it.
fn message(key: String) -> Bytes {
    let entries = vec![Entry { key: "user".to_owned(), value: key }];
    let descriptors = vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }];
    let request = RateLimitRequest { domain: "api".to_owned(), descriptors, hits_addend: 1 };
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(request.encoded_len()).unwrap_or(u32::MAX));
    framed.put_slice(&request.encode_to_vec());
    framed.freeze()
}

/// Asks so often.
pub(crate) async fn run(server: &Served, load: &Rc<Load>, asks: usize) -> Result<Measured> {
    // What a server does when it first meets a peer is not of the time between.
    drive(server, load, asks / 10).await?;
    let before = cpu_ns(server.id())?;
    let begun = load.clock.now();
    let mut took = drive(server, load, asks).await?;
    let elapsed = load.clock.now().duration_since(begun).get();
    let spent = cpu_ns(server.id())?.saturating_sub(before);
    took.sort_unstable();
    let quantile = |percent| took.get(took.len() * percent / 100).copied().unwrap_or(0);
    Ok(Measured {
        a_second: per(number(asks) * 10_000, elapsed),
        p50_us: quantile(50),
        p99_us: quantile(99),
        cpu_us: per(spent / 1_000, number(asks)),
    })
}

/// The time of each request, in µs.
async fn drive(server: &Served, load: &Rc<Load>, asks: usize) -> Result<Vec<u64>> {
    let progress = Rc::new(Progress::default());
    let local = LocalSet::new();
    let mut streams = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port.number())).await?;
        stream.set_nodelay(true)?;
        let (send, connection) = h2::client::handshake(stream).await?;
        local.spawn_local(connection);
        for _ in 0..STREAMS {
            let (send, load, progress) = (send.clone(), Rc::clone(load), Rc::clone(&progress));
            streams.spawn_local_on(ask_on(send, load, progress, asks), &local);
        }
    }
    let all = async {
        while let Some(ended) = streams.join_next().await {
            ended??;
        }
        anyhow::Ok(())
    };
    local.run_until(all).await?;
    Ok(progress.took_us.take())
}

/// Asks one by one until all together have asked so often.
async fn ask_on(
    mut send: SendRequest<Bytes>,
    load: Rc<Load>,
    progress: Rc<Progress>,
    asks: usize,
) -> Result<()> {
    loop {
        let at = progress.asked.replace(progress.asked.get() + 1);
        if at >= asks {
            return Ok(());
        }
        let begun = load.clock.now();
        send = ask(send, load.message(at), at == 0).await?;
        progress.took_us.borrow_mut().push(load.clock.now().duration_since(begun).get());
    }
}

async fn ask(
    send: SendRequest<Bytes>,
    message: Bytes,
    is_looked_at: bool,
) -> Result<SendRequest<Bytes>> {
    let mut send = send.ready().await?;
    let request = Request::post(PATH)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (answer, mut body) = send.send_request(request, false)?;
    body.send_data(message, true)?;
    let mut answer = answer.await?.into_body();
    let mut bytes = BytesMut::new();
    while let Some(chunk) = answer.data().await {
        let chunk = chunk?;
        answer.flow_control().release_capacity(chunk.len())?;
        bytes.extend_from_slice(&chunk);
    }
    let trailers = answer.trailers().await?.context("an answer without trailers")?;
    ensure!(trailers.get("grpc-status").is_some_and(|it| it == "0"), "{trailers:?}");
    if is_looked_at {
        let said = RateLimitResponse::decode(bytes.get(5..).unwrap_or_default())?;
        ensure!(said.overall_code() == Code::Ok && said.statuses.len() == 1, "{said:?}");
    }
    Ok(send)
}

const PATH: &str = "http://127.0.0.1/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
