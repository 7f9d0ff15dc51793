//! Hostile clients: other clients are served, and nothing panics.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use proptest::prelude::*;
use prost::Message as _;
use tokio::net::TcpStream;

use super::client::{call, connect, parse_request, send};
use super::start;
use crate::support::connect_http2;
use crate::support::daemon::Daemon;

const LIMITS: &str = "
domain: domain
descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 9 } }, { key: any }]
";
const CALL: &str = "http://t/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Sends a raw body. Returns the gRPC status.
async fn send_raw(daemon: &Daemon, body: impl Into<Bytes>) -> String {
    let stream = TcpStream::connect(daemon.grpc).await.unwrap();
    let (mut sender, _connection) = connect_http2(stream).await;
    let request = Request::post(CALL).header("content-type", "application/grpc");
    let request = request.body(Full::new(body.into())).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let header = response.headers().get("grpc-status").cloned();
    let body = response.into_body().collect().await.unwrap();
    let status = header.or_else(|| body.trailers()?.get("grpc-status").cloned()).unwrap();
    status.to_str().unwrap().to_owned()
}

/// Encodes the frame of a message.
fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], message].concat()
}

async fn assert_others_are_served(daemon: &Daemon) {
    let response = call(&mut connect(daemon).await, "domain | user=served +0").await;
    assert!(response.starts_with("OK | OK 9/HOUR 9"), "{response}");
}

#[tokio::test]
async fn malformed_messages_are_rejected() {
    let daemon = start("", LIMITS).await;
    for (name, body, status) in [
        ("no frame", Vec::new(), "13"),
        ("an incomplete frame", vec![0, 0, 0, 0, 9, 1], "13"),
        ("a compressed frame", vec![1, 0, 0, 0, 0], "13"),
        ("a frame with an invalid flag", vec![7, 0, 0, 0, 0], "13"),
        ("a frame of 4 GiB", vec![0, 255, 255, 255, 255], "11"),
        ("a frame over the limit", frame(&vec![0; 64 * 1024 - 4]), "8"),
        ("a body over the limit", vec![0; 1 << 20], "8"),
        ("an empty message", frame(&[]), "3"),
        ("an incomplete field", frame(&[0x0a, 9, b'd']), "13"),
        ("invalid UTF-8", frame(&[0x0a, 1, 0xff]), "13"),
        ("an invalid wire type", frame(&[0x0f]), "13"),
        (
            "an endless number",
            frame(&[0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255]),
            "13",
        ),
        ("nested groups", frame(&[0x0b; 10_000]), "13"),
    ] {
        assert_eq!(send_raw(&daemon, body).await, status, "{name}");
        assert_others_are_served(&daemon).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_requests_are_answered_or_rejected() {
    for charging in ["charging: atomic", "charging: reference"] {
        let daemon = start(&format!("{charging} }}\nlimits: {{ body: 8MiB"), LIMITS).await;
        let mut client = connect(&daemon).await;
        let user = |value: String| RateLimitDescriptor {
            entries: vec![Entry { key: "user".to_owned(), value }],
            ..RateLimitDescriptor::default()
        };
        let request = |descriptors| RateLimitRequest {
            domain: "domain".to_owned(),
            descriptors,
            hits_addend: 2,
        };
        for (name, message, is_answered) in [
            ("the longest key", request(vec![user("x".repeat(4_096 - 5))]), true),
            ("a key that is one byte too long", request(vec![user("x".repeat(4_096 - 4))]), false),
            ("a key that is much too long", request(vec![user("%".repeat(1 << 22))]), false),
            (
                "thousands of descriptors",
                request((0..5_000).map(|n| user(n.to_string())).collect()),
                charging.contains("reference"),
            ),
            (
                "thousands of descriptors with one key",
                request(vec![user(String::new()); 5_000]),
                charging.contains("reference"),
            ),
            (
                "a descriptor of thousands of entries",
                request(vec![RateLimitDescriptor {
                    entries: vec![Entry::default(); 50_000],
                    ..RateLimitDescriptor::default()
                }]),
                true,
            ),
            (
                "descriptors without entries",
                request(vec![RateLimitDescriptor::default(); 50_000]),
                true,
            ),
        ] {
            let descriptors = message.descriptors.len();
            match send(&mut client, message).await {
                Ok(response) => {
                    assert!(is_answered, "{charging}: {name}");
                    assert_eq!(response.statuses.len(), descriptors, "{name}");
                }
                Err(status) => {
                    assert!(!is_answered, "{charging}: {name}: {status}");
                    assert_eq!(status.code(), tonic::Code::InvalidArgument, "{name}");
                }
            }
            assert_others_are_served(&daemon).await;
        }
    }
}

#[tokio::test]
async fn any_number_of_hits_is_accepted() {
    let daemon = start("charging: reference", LIMITS).await;
    let mut client = connect(&daemon).await;
    for (at, hits) in
        [0, 1, u64::from(u32::MAX), (1 << 53) - 1, 1 << 53, u64::MAX].iter().enumerate()
    {
        for sign in ["+", "-"] {
            let response = call(&mut client, &format!("domain | user={at} {sign}{hits}")).await;
            assert!(response.starts_with("OK") || response.starts_with("OVER_LIMIT"), "{response}");
        }
    }
}

#[test]
fn arbitrary_bytes_do_not_stop_the_service() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let daemon = runtime.block_on(start("charging: reference", LIMITS));
    let whole = parse_request("domain +3 | user=a any=b +2 5/DAY | user=b -1");
    let whole = whole.encode_to_vec();
    let mangled = (any::<prop::sample::Index>(), any::<u8>(), any::<prop::sample::Index>());
    proptest!(ProptestConfig::with_cases(64), |(bytes in prop::collection::vec(any::<u8>(), 0..64), (at, byte, end) in mangled)| {
        runtime.block_on(async {
            let _ = send_raw(&daemon, frame(&bytes)).await;
            let _ = send_raw(&daemon, bytes).await;
            let mut other = whole.clone();
            *at.get_mut(&mut other) = byte;
            let _ = send_raw(&daemon, frame(&other)).await;
            let _ = send_raw(&daemon, frame(&whole[..end.index(whole.len())])).await;
        });
    });
    runtime.block_on(assert_others_are_served(&daemon));
}
