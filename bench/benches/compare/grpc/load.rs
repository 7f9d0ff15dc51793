//! A minimal gRPC client on HTTP/2, so that the client takes as little of the time as possible.

use std::cell::Cell;
use std::future::poll_fn;
use std::iter;
use std::net::Ipv4Addr;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use bench::figures::ratio;
use bytes::{BufMut, Bytes, BytesMut};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use h2::client::SendRequest;
use http::Request;
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::{self, JoinSet, LocalSet};
use tollgate_state::Clock;

use crate::open_loop::Client;
use crate::servers::Server;

const CONNECTIONS: usize = 10;
const STREAMS: usize = 20;
/// How many keys are drawn in advance; a run repeats them.
const DRAWS: usize = 1 << 17;

/// The requests, one for each key.
#[derive(Debug)]
pub(crate) struct Load {
    clock: Clock,
    messages: Vec<Bytes>,
    /// Indices of messages in random order, the same for every server.
    order: Vec<usize>,
}

impl Load {
    pub(crate) fn new(keys: usize) -> Self {
        let messages = bench::keys(keys).into_iter().map(message).collect();
        Load { clock: Clock::system(), messages, order: bench::uniform(keys, DRAWS) }
    }

    fn message(&self, number: usize) -> Bytes {
        self.messages[self.order[number % DRAWS]].clone()
    }
}

/// A request in the framing of gRPC: a flag for compression, the length, the message.
#[expect(clippy::expect_used, reason = "a request has less than 4 GiB")]
fn message(key: String) -> Bytes {
    let entries = vec![Entry { key: "key".to_owned(), value: key }];
    let descriptors = vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }];
    let request = RateLimitRequest { domain: "api".to_owned(), descriptors, hits_addend: 1 };
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(request.encoded_len()).expect("a length of 32 bits"));
    framed.put_slice(&request.encode_to_vec());
    framed.freeze()
}

/// A stream of a connection.
#[derive(Debug)]
pub(crate) struct GrpcClient {
    client: SendRequest<Bytes>,
    load: Rc<Load>,
    /// How many statuses a response has.
    statuses: usize,
}

/// Opens connections to a server whose responses have this many statuses.
pub(crate) async fn connect(
    server: &Server,
    statuses: usize,
    load: &Rc<Load>,
) -> Result<Vec<GrpcClient>> {
    let mut clients = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port.number())).await?;
        stream.set_nodelay(true)?;
        let (client, connection) = h2::client::handshake(stream).await?;
        task::spawn_local(connection);
        let client = || GrpcClient { client: client.clone(), load: Rc::clone(load), statuses };
        clients.extend(iter::repeat_with(client).take(STREAMS));
    }
    Ok(clients)
}

/// Sends this many requests, whose responses have this many statuses; returns the number of requests, and
/// how many there were per second.
pub(crate) async fn run(
    server: &Server,
    statuses: usize,
    load: &Rc<Load>,
    requests: u64,
) -> Result<(u64, u64)> {
    let start = load.clock.now();
    let all_streams = async {
        let sent = Rc::new(Cell::new(0));
        let mut streams = JoinSet::new();
        for client in connect(server, statuses, load).await? {
            streams.spawn_local(run_stream(client, Rc::clone(&sent), requests));
        }
        while let Some(result) = streams.join_next().await {
            result??;
        }
        anyhow::Ok(())
    };
    LocalSet::new().run_until(all_streams).await?;
    let elapsed = load.clock.now().duration_since(start).get();
    Ok((requests, ratio(requests * 10_000, elapsed)))
}

/// Sends one request at a time until all streams together have sent `requests`.
async fn run_stream(mut client: GrpcClient, sent: Rc<Cell<u64>>, requests: u64) -> Result<()> {
    loop {
        let number = sent.replace(sent.get() + 1);
        if number >= requests {
            return Ok(());
        }
        client.call(number).await?;
    }
}

impl Client for GrpcClient {
    /// Decodes only the first message.
    async fn call(&mut self, number: u64) -> Result<()> {
        let message = self.load.message(usize::try_from(number)?);
        poll_fn(|context| self.client.poll_ready(context)).await?;
        let request = Request::post(URL)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        let (response, mut body) = self.client.send_request(request, false)?;
        body.send_data(message, true)?;
        let mut body = response.await?.into_body();
        let mut bytes = BytesMut::new();
        while let Some(chunk) = body.data().await {
            let chunk = chunk?;
            body.flow_control().release_capacity(chunk.len())?;
            bytes.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await?.context("a response without trailers")?;
        ensure!(trailers.get("grpc-status").is_some_and(|status| status == "0"), "{trailers:?}");
        if number == 0 {
            let message = bytes.get(5..).context("a response without a message")?;
            let response = RateLimitResponse::decode(message)?;
            let is_admitted = response.overall_code() == Code::Ok;
            ensure!(is_admitted && response.statuses.len() == self.statuses, "{response:?}");
        }
        Ok(())
    }
}

const URL: &str = "http://127.0.0.1/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
