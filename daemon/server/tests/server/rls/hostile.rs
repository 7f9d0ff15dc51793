//! Hostile callers: whatever they send, others are served, and nothing panics.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use proptest::prelude::*;
use prost::Message as _;
use tokio::net::TcpStream;

use super::client::{ask, call, connect};
use super::start;
use crate::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 9 } }, { key: any }]
";
const CALL: &str = "http://t/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Sends a body as it is; the status that gRPC has for it.
async fn send(daemon: &Daemon, body: impl Into<Bytes>) -> String {
    let stream = TcpStream::connect(daemon.grpc).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post(CALL).header("content-type", "application/grpc");
    let request = request.body(Full::new(body.into())).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    let of_head = answer.headers().get("grpc-status").cloned();
    let body = answer.into_body().collect().await.unwrap();
    let status = of_head.or_else(|| body.trailers()?.get("grpc-status").cloned()).unwrap();
    connection.abort();
    status.to_str().unwrap().to_owned()
}

/// A message as it goes over the wire.
fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

async fn assert_served(daemon: &Daemon) {
    let answer = ask(&mut connect(daemon).await, "domain | user=served +0").await;
    assert!(answer.starts_with("OK | OK 9/HOUR 9"), "{answer}");
}

#[tokio::test]
async fn what_is_no_message_is_refused() {
    let daemon = start("", LIMITS).await;
    for (what, body, status) in [
        ("nothing", Vec::new(), "13"),
        ("a frame that breaks off", vec![0, 0, 0, 0, 9, 1], "13"),
        ("a frame that is compressed", vec![1, 0, 0, 0, 0], "13"),
        ("a frame of no kind", vec![7, 0, 0, 0, 0], "13"),
        ("a frame of 4 GiB", vec![0, 255, 255, 255, 255], "11"),
        ("a frame above the bound", framed(&vec![0; 64 * 1024 - 4]), "8"),
        ("a body above the bound", vec![0; 1 << 20], "8"),
        ("an empty message", framed(&[]), "3"),
        ("a field that breaks off", framed(&[0x0a, 9, b'd']), "13"),
        ("a text that is none", framed(&[0x0a, 1, 0xff]), "13"),
        ("a field of no kind", framed(&[0x0f]), "13"),
        (
            "a number without an end",
            framed(&[0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
            "13",
        ),
        ("groups in groups", framed(&[0x0b; 10_000]), "13"),
    ] {
        assert_eq!(send(&daemon, body).await, status, "{what}");
        assert_served(&daemon).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_are_answered_or_refused() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(&format!("{charging} }}\nlimits: {{ body: 8MiB"), LIMITS).await;
        let mut client = connect(&daemon).await;
        let user = |value: String| RateLimitDescriptor {
            entries: vec![Entry { key: "user".to_owned(), value }],
            ..RateLimitDescriptor::default()
        };
        let of = |descriptors| RateLimitRequest {
            domain: "domain".to_owned(),
            descriptors,
            hits_addend: 2,
        };
        for (what, request, is_answered) in [
            ("the longest key", of(vec![user("x".repeat(65_536 - 5))]), true),
            ("one too long", of(vec![user("x".repeat(65_536 - 4))]), false),
            ("one much too long", of(vec![user("%".repeat(1 << 22))]), false),
            (
                "thousands of descriptors",
                of((0..5_000).map(|n| user(n.to_string())).collect()),
                charging.contains("reference"),
            ),
            (
                "as many of one key",
                of(vec![user(String::new()); 5_000]),
                charging.contains("reference"),
            ),
            (
                "a descriptor of thousands of entries",
                of(vec![RateLimitDescriptor {
                    entries: vec![Entry::default(); 50_000],
                    ..RateLimitDescriptor::default()
                }]),
                true,
            ),
            ("descriptors of nothing", of(vec![RateLimitDescriptor::default(); 50_000]), true),
        ] {
            let many = request.descriptors.len();
            match call(&mut client, request).await {
                Ok(answer) => {
                    assert!(is_answered, "{charging}: {what}");
                    assert_eq!(answer.statuses.len(), many, "{what}");
                }
                Err(status) => {
                    assert!(!is_answered, "{charging}: {what}: {status}");
                    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{what}");
                }
            }
            assert_served(&daemon).await;
        }
    }
}

#[tokio::test]
async fn any_hits_are_taken() {
    let daemon = start("charging: reference", LIMITS).await;
    let mut client = connect(&daemon).await;
    for (at, hits) in
        [0, 1, u64::from(u32::MAX), (1 << 53) - 1, 1 << 53, u64::MAX].iter().enumerate()
    {
        for sign in ["+", "-"] {
            let answer = ask(&mut client, &format!("domain | user={at} {sign}{hits}")).await;
            assert!(answer.starts_with("OK") || answer.starts_with("OVER_LIMIT"), "{answer}");
        }
    }
}

#[test]
fn any_bytes_are_answered() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let daemon = runtime.block_on(start("charging: reference", LIMITS));
    let whole = super::lines::request_of("domain +3 | user=a any=b +2 5/DAY | user=b -1");
    let whole = whole.encode_to_vec();
    let mangled = (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>());
    proptest!(ProptestConfig::with_cases(64), |(bytes in prop::collection::vec(any::<u8>(), 0..64), (at, byte, end) in mangled)| {
        runtime.block_on(async {
            let _ = send(&daemon, framed(&bytes)).await;
            let _ = send(&daemon, bytes).await;
            let mut other = whole.clone();
            *at.get_mut(&mut other) = byte;
            let _ = send(&daemon, framed(&other)).await;
            let _ = send(&daemon, framed(&whole[..end.index(whole.len())])).await;
        });
    });
    runtime.block_on(assert_served(&daemon));
}
