//! gRPC connections: maximum age, draining, TLS and invalid calls.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::SendRequest;
use hyper::{Request, Response};
use tokio::net::TcpStream;
use tollgate_daemon::{Config, Stop};

use super::client::{call, connect};
use crate::support::certificates::Authority;
use crate::support::connect_http2;
use crate::support::daemon::Daemon;

type Sender = SendRequest<Full<Bytes>>;

/// Opens a connection. Returns the sender of requests, and the task that ends with the connection.
async fn open(daemon: &Daemon) -> (Sender, tokio::task::JoinHandle<hyper::Result<()>>) {
    connect_http2(TcpStream::connect(daemon.grpc).await.unwrap()).await
}

#[tokio::test]
async fn connections_past_their_maximum_age_are_shut_down_gracefully() {
    let set = |config: &mut Config| config.limits.connection_age = Duration::from_secs(1);
    let daemon = Daemon::start_with_options(set).await;
    // An idle connection, and one with a health watch in flight.
    let (idle, ended) = open(&daemon).await;
    let (mut watching, watched) = open(&daemon).await;
    let watch = Request::post("http://t/grpc.health.v1.Health/Watch")
        .header("content-type", "application/grpc")
        .body(Full::from(&[0; 5][..]))
        .unwrap();
    let watch = watching.send_request(watch).await.unwrap();
    ended.await.unwrap().unwrap();
    let collected = watch.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "14");
    watched.await.unwrap().unwrap();
    drop((idle, watching));
    // New connections are served.
    assert!(call(&mut connect(&daemon).await, "log | a=b").await.starts_with("OK"));
}

#[tokio::test]
async fn calls_are_answered_during_the_drain_delay() {
    let mut daemon = Daemon::start().await;
    let mut client = connect(&daemon).await;
    assert!(call(&mut client, "log | a=b").await.starts_with("OK"));
    daemon.stop_with(Stop::AfterDelay);
    assert!(call(&mut client, "log | a=b").await.starts_with("OK"));
    daemon.join().await;
}

async fn post(sender: &mut Sender, path: &str, kind: &str) -> Response<hyper::body::Incoming> {
    let request = Request::post(format!("http://t{path}")).header("content-type", kind);
    sender.send_request(request.body(Full::default()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn invalid_calls_are_rejected() {
    let daemon = Daemon::start().await;
    let (mut sender, _connection) = open(&daemon).await;
    const CALL: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    let unsupported =
        ["application/grpc-web", "application/grpc-web+proto", "application/json", ""];
    let invalid = ["application/grpc", "application/grpc+proto", "application/grpc;charset=utf-8"];
    let unknown = [
        "/envoy.service.ratelimit.v3.RateLimitService/Other",
        "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit",
        "/",
        "//",
        "/v1/check",
        "/grpc.health.v1.Health/Nothing",
    ];
    let unsupported = unsupported.map(|kind| (CALL, kind, 415, None));
    let invalid = invalid.map(|kind| (CALL, kind, 200, Some("13")));
    let unknown = unknown.map(|path| (path, "application/grpc", 200, Some("12")));
    for (path, kind, status, grpc_status) in unsupported.into_iter().chain(invalid).chain(unknown) {
        let response = post(&mut sender, path, kind).await;
        assert_eq!(response.status(), status, "{path} {kind}");
        let header = response.headers().get("grpc-status").map(|value| value.to_str().unwrap());
        assert_eq!(header, grpc_status, "{path} {kind}");
    }
    let get = Request::get("http://t/").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(get).await.unwrap().status(), 405);
    let mut over_http1 = crate::support::client::Client::connect(daemon.grpc).await;
    let response = over_http1.get("/livez").await.unwrap();
    assert_eq!(response.status, 505);
    assert!(
        response.body.starts_with("this is the gRPC listener, which needs HTTP/2"),
        "{}",
        response.body
    );
}

#[tokio::test]
async fn tls_is_served_when_configured() {
    let authority = Authority::new();
    let daemon = Daemon::start_with_tls(&authority.tls(), "").await;
    let config = authority.client(None, &[b"h2"]);
    let client = crate::tls::connect(daemon.grpc, &config).await.unwrap();
    assert_eq!(client.0.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, _connection) = connect_http2(client.0).await;
    let request = Request::post("https://localhost/grpc.health.v1.Health/Check")
        .header("content-type", "application/grpc");
    let request = request.body(Full::<Bytes>::from(&[0; 5][..])).unwrap();
    let response = sender.send_request(request).await.unwrap();
    // The message is SERVING, encoded in two bytes.
    assert_eq!(
        response.into_body().collect().await.unwrap().to_bytes(),
        &b"\0\0\0\0\x02\x08\x01"[..]
    );
}
