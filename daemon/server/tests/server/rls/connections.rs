//! Connections of gRPC: how long they live, how they end, and what is spoken on them.

use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tollgate_server::{Stop, Tls};

use super::client::{ask, connect};
use crate::certificates::Authority;
use crate::daemon::{Daemon, POLICIES};

type Sender = http2::SendRequest<Full<Bytes>>;

/// A connection, and what tells of its end.
async fn connection(daemon: &Daemon) -> (Sender, tokio::task::JoinHandle<hyper::Result<()>>) {
    let stream = TcpStream::connect(daemon.grpc).await.unwrap();
    let (sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

#[tokio::test]
async fn a_connection_that_is_old_is_ended_politely() {
    let daemon = Daemon::start_changed(|x| x.limits.connection_age = Duration::from_secs(1));
    let daemon = daemon.await;
    // One with nothing under way, and one that watches.
    let (idle, ended) = connection(&daemon).await;
    let (mut watching, watched) = connection(&daemon).await;
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
    // Whoever asks again is served: a client makes another connection.
    assert!(ask(&mut connect(&daemon).await, "log | a=b").await.starts_with("OK"));
}

#[tokio::test]
async fn what_is_under_way_is_answered_while_it_stops() {
    let mut daemon = Daemon::start().await;
    let mut client = connect(&daemon).await;
    assert!(ask(&mut client, "log | a=b").await.starts_with("OK"));
    daemon.stop_as(Stop::AfterDelay);
    assert!(ask(&mut client, "log | a=b").await.starts_with("OK"));
    daemon.ended().await;
}

async fn post(sender: &mut Sender, path: &str, kind: &str) -> Response<hyper::body::Incoming> {
    let request = Request::post(format!("http://t{path}")).header("content-type", kind);
    sender.send_request(request.body(Full::default()).unwrap()).await.unwrap()
}

#[tokio::test]
async fn what_is_no_call_is_refused_in_plain_words() {
    let daemon = Daemon::start().await;
    let (mut sender, _connection) = connection(&daemon).await;
    const CALL: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
    for (path, kind, status, grpc_status) in [
        (CALL, "application/grpc-web", 415, None),
        (CALL, "application/grpc-web+proto", 415, None),
        (CALL, "application/json", 415, None),
        (CALL, "", 415, None),
        (CALL, "application/grpc", 200, Some("13")),
        (CALL, "application/grpc+proto", 200, Some("13")),
        (CALL, "application/grpc;charset=utf-8", 200, Some("13")),
        ("/envoy.service.ratelimit.v3.RateLimitService/Other", "application/grpc", 200, Some("12")),
        (
            "/envoy.service.ratelimit.v2.RateLimitService/ShouldRateLimit",
            "application/grpc",
            200,
            Some("12"),
        ),
        ("/", "application/grpc", 200, Some("12")),
        ("//", "application/grpc", 200, Some("12")),
        ("/v1/check", "application/grpc", 200, Some("12")),
        ("/grpc.health.v1.Health/Nothing", "application/grpc", 200, Some("12")),
    ] {
        let answer = post(&mut sender, path, kind).await;
        assert_eq!(answer.status(), status, "{path} {kind}");
        let told = answer.headers().get("grpc-status").map(|header| header.to_str().unwrap());
        assert_eq!(told, grpc_status, "{path} {kind}");
    }
    let get = Request::get("http://t/").body(Full::default()).unwrap();
    assert_eq!(sender.send_request(get).await.unwrap().status(), 405);
    let mut over_http1 = crate::client::Client::connect(daemon.grpc).await;
    let answer = over_http1.get("/livez").await.unwrap();
    assert_eq!(answer.status, 505);
    assert!(
        answer.body.starts_with("this is the gRPC listener, which needs HTTP/2"),
        "{}",
        answer.body
    );
}

#[tokio::test]
async fn tls_is_spoken_where_it_is_set() {
    let authority = Authority::new();
    let tls = Tls::open(authority.write_pair(&authority.sign("daemon"))).unwrap();
    let daemon = Daemon::start_grpc_at(POLICIES, |grpc| grpc.with_tls(Some(tls))).await;
    let config = authority.client(None, &[b"h2"]);
    let client = crate::tls::connect(daemon.grpc, &config).await.unwrap();
    assert_eq!(client.0.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(client.0)).await.unwrap();
    let connection = tokio::spawn(connection);
    let request = Request::post("https://localhost/grpc.health.v1.Health/Check")
        .header("content-type", "application/grpc");
    let request = request.body(Full::<Bytes>::from(&[0; 5][..])).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    // SERVING, in a message of two bytes.
    assert_eq!(
        answer.into_body().collect().await.unwrap().to_bytes(),
        &b"\0\0\0\0\x02\x08\x01"[..]
    );
    connection.abort();
}
