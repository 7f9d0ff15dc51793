//! The paths of the daemon's protocols without sockets: bytes of requests in, bytes of responses
//! out.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Result, anyhow, ensure};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use http::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::runtime::Builder;
use tollgate_config::Config;
use tollgate_engine::{ActiveConfig, Engine, PeerAddress, Remote};
use tollgate_envoy::EnvoyState;
use tollgate_http::HttpState;
use tollgate_resp::RespReplay;

use crate::measure::Work;
use crate::memory::limiter;

const CONFIG: &str = "policies: { api: { limits: [1000000/s burst 1000000] } }";
const KEYS: usize = 1_000;
/// The requests of a pipeline, and of a connection over HTTP.
const PIPELINE: usize = 32;

fn config() -> Result<Config> {
    Config::from_yaml(CONFIG).map_err(|error| anyhow!("{error:?}"))
}

fn engine() -> Result<(Engine, Remote)> {
    let active = ActiveConfig::new(&config()?).map_err(anyhow::Error::msg)?;
    let remote = Remote::new(PeerAddress::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 1))));
    Ok((Engine::new(active, limiter().into()), remote))
}

pub(crate) fn throttle() -> Result<Work> {
    resp(|key| vec!["CL.THROTTLE", key, "999999", "1000000", "1"], b"*5\r\n:0\r\n")
}

pub(crate) fn resp_check() -> Result<Work> {
    resp(|key| vec!["TOLLGATE.CHECK", "api", key], b"*30\r\n$7\r\nallowed\r\n:1\r\n")
}

/// Pipelines of a command whose replies begin with `reply`.
fn resp(command: impl Fn(&str) -> Vec<&str>, reply: &'static [u8]) -> Result<Work> {
    let mut client = RespReplay::new(&config()?, limiter()).map_err(anyhow::Error::msg)?;
    let keys = bench::keys(KEYS);
    let commands: Vec<Vec<u8>> = keys.iter().map(|key| encode(&command(key))).collect();
    let pipelines: Vec<Vec<u8>> = commands.chunks_exact(PIPELINE).map(<[_]>::concat).collect();
    let (mut next, mut replies) = (0, Vec::new());
    let call = move || {
        replies.clear();
        client.send_into(&pipelines[next % pipelines.len()], &mut replies);
        next += 1;
        ensure!(replies.starts_with(reply), "{}", replies.escape_ascii());
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: PIPELINE })
}

fn encode(args: &[&str]) -> Vec<u8> {
    let mut command = format!("*{}\r\n", args.len());
    for arg in args {
        command.push_str(&format!("${}\r\n{arg}\r\n", arg.len()));
    }
    command.into_bytes()
}

/// Requests on one connection, with the parts of hyper that read and write them.
pub(crate) fn http_check() -> Result<Work> {
    let (engine, remote) = engine()?;
    let (state, mut replies) = (HttpState::default(), Vec::new());
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let requests: Vec<String> = bench::keys(KEYS).iter().map(|key| http_request(key)).collect();
    let connections: Vec<String> = requests.chunks_exact(PIPELINE).map(<[_]>::concat).collect();
    let mut next = 0;
    let call = move || {
        let answer = async |request| {
            Ok::<_, Infallible>(tollgate_http::answer(&engine, &state, &remote, request).await)
        };
        let answer = &answer;
        replies.clear();
        let requests = connections[next % connections.len()].as_bytes();
        let io = TokioIo::new(tokio::io::join(requests, &mut replies));
        let mut protocol = http1::Builder::new();
        protocol.half_close(true).header_read_timeout(None);
        let service = service_fn(answer);
        runtime.block_on(protocol.serve_connection(io, service))?;
        next += 1;
        ensure!(replies.starts_with(b"HTTP/1.1 200"), "{}", replies.escape_ascii());
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: PIPELINE })
}

fn http_request(key: &str) -> String {
    let body = format!(r#"{{"policy":"api","key":"{key}"}}"#);
    let length = body.len();
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: 127.0.0.1:8080\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// A message of the rate limit service decoded, decided and encoded; HTTP/2 is not counted.
pub(crate) fn should_rate_limit() -> Result<Work> {
    let (engine, remote) = engine()?;
    let (state, headers) = (EnvoyState::default(), HeaderMap::new());
    let runtime = Builder::new_current_thread().enable_time().build()?;
    let messages: Vec<Vec<u8>> = bench::keys(KEYS).into_iter().map(message).collect();
    let (mut next, mut response) = (0, Vec::new());
    let call = move || {
        let request = RateLimitRequest::decode(&*messages[next % KEYS])?;
        next += 1;
        let answer = tollgate_envoy::answer_call(&engine, &state, &remote, &headers, &request);
        response.clear();
        runtime.block_on(answer)?.encode(&mut response)?;
        // The first field is the code: OK.
        ensure!(response.starts_with(&[0x08, 0x01]), "{}", response.escape_ascii());
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: 1 })
}

fn message(key: String) -> Vec<u8> {
    let entries = vec![Entry { key: "user".to_owned(), value: key }];
    let descriptors = vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }];
    RateLimitRequest { domain: "api".to_owned(), descriptors, hits_addend: 1 }.encode_to_vec()
}
