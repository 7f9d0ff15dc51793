//! Stopping: requests in flight are answered, and no client is left without a response.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::channel::Channel;
use hyper::Request;
use hyper::body::Bytes;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tollgate_daemon::Stop;

use crate::support::client::{Client, encode_request};
use crate::support::connect_http2;
use crate::support::daemon::{Daemon, POLICIES};

/// Sends requests, reconnecting when the daemon closes, until the daemon no longer listens. Counts
/// responses.
async fn send_until_stopped(address: std::net::SocketAddr, responses: Arc<AtomicU32>) {
    let body = r#"{"policy":"bucket","key":"k","cost":0}"#;
    while let Ok(stream) = TcpStream::connect(address).await {
        let mut client = Client(stream);
        let mut is_accepted = false;
        loop {
            let response = match client.post("/v1/check", body).await {
                Ok(response) => response,
                // The connection was in the backlog, and the listener was closed before `accept`.
                Err(error) if error.kind() == ErrorKind::ConnectionReset && !is_accepted => {
                    assert!(TcpStream::connect(address).await.is_err(), "it was dropped: {error}");
                    return;
                }
                Err(error) => panic!("a request was not answered: {error}"),
            };
            assert_eq!(response.status, 200);
            is_accepted = true;
            responses.fetch_add(1, Ordering::Relaxed);
            if response.header("connection") == Some("close") {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_accepted_request_is_answered_under_load() {
    for stop in [Stop::WithoutDelay, Stop::AfterDelay] {
        let yaml = format!("drain: {{ delay: 200ms }}\n{POLICIES}");
        let mut daemon = Daemon::start_with(&yaml).await;
        let responses = Arc::new(AtomicU32::new(0));
        let mut clients = Vec::new();
        for _ in 0..16 {
            let client = send_until_stopped(daemon.address, Arc::clone(&responses));
            clients.push(tokio::spawn(client));
        }
        while responses.load(Ordering::Relaxed) < 500 {
            tokio::task::yield_now().await;
        }
        daemon.stop_with(stop);
        for client in clients {
            client.await.unwrap();
        }
        daemon.join().await;
    }
}

#[tokio::test]
async fn during_the_drain_delay_the_daemon_is_not_ready_and_serves() {
    let yaml = format!("drain: {{ delay: 1s }}\n{POLICIES}");
    let mut daemon = Daemon::start_with(&yaml).await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    let start = Instant::now();
    daemon.stop_with(Stop::AfterDelay);
    for address in [daemon.address, daemon.metrics] {
        let mut probe = Client::connect(address).await;
        while probe.get("/readyz").await.unwrap().status != 503 {}
    }
    let body = r#"{"policy":"bucket","key":"k","cost":0}"#;
    let mut new = daemon.connect().await;
    for client in [&mut kept, &mut new] {
        let response = client.post("/v1/check", body).await.unwrap();
        assert_eq!((response.status, response.header("connection")), (200, None));
    }
    // Once the delay is over, the next response closes the connection.
    while new.post("/v1/check", body).await.unwrap().header("connection") != Some("close") {}
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert_eq!(new.read_until_closed().await, "");
    drop(kept);
    daemon.join().await;
}

/// Sends the head of a check with this body. 100 Continue shows that the daemon has read it.
async fn begin_request(daemon: &Daemon, body: &str) -> Client {
    let request = encode_request("POST", "/v1/check", "expect: 100-continue", body);
    let mut client = daemon.send(request.strip_suffix(body).unwrap()).await;
    assert_eq!(client.read_response().await.unwrap().status, 100);
    client
}

#[tokio::test]
async fn requests_in_flight_finish_and_idle_connections_are_closed() {
    let mut daemon = Daemon::start().await;
    let mut idle = daemon.connect().await;
    idle.get("/livez").await.unwrap();
    let mut silent = daemon.connect().await;
    let body = r#"{"policy":"log","key":"a"}"#;
    let mut busy = begin_request(&daemon, body).await;
    daemon.stop();
    assert_eq!(idle.read_until_closed().await, "");
    assert_eq!(silent.read_until_closed().await, "");
    busy.send(body).await.unwrap();
    let response = busy.read_response().await.unwrap();
    assert_eq!((response.status, response.header("connection")), (200, Some("close")));
    assert_eq!(busy.read_until_closed().await, "");
    daemon.join().await;
}

#[tokio::test]
async fn http2_requests_in_flight_finish() {
    let mut daemon = Daemon::start().await;
    let stream = TcpStream::connect(daemon.address).await.unwrap();
    let (mut sender, connection) = connect_http2(stream).await;
    let url = format!("http://{}/v1/check", daemon.address);
    let (mut body, receiver) = Channel::<Bytes>::new(1);
    let response = sender.send_request(Request::post(&url).body(receiver).unwrap());
    body.send_data(Bytes::from(r#"{"policy":"log","#)).await.unwrap();
    // A response on another stream shows that the daemon has received this one.
    let (_, empty) = Channel::<Bytes>::new(1);
    let live = format!("http://{}/livez", daemon.address);
    let mut other = sender.clone();
    let live = other.send_request(Request::get(live).body(empty).unwrap());
    assert_eq!(live.await.unwrap().status(), 200);
    daemon.stop();
    while TcpStream::connect(daemon.address).await.is_ok() {}
    body.send_data(Bytes::from(r#""key":"h2"}"#)).await.unwrap();
    drop(body);
    assert_eq!(response.await.unwrap().status(), 200);
    connection.await.unwrap().unwrap();
    daemon.join().await;
}

#[tokio::test]
async fn connections_open_after_drain_timeout_are_closed() {
    let yaml = "drain: { timeout: 100ms }\npolicies: { log: { limits: [2/min log] } }";
    let mut daemon = Daemon::start_with(yaml).await;
    let mut busy = begin_request(&daemon, "{}").await;
    daemon.stop();
    daemon.join().await;
    assert_eq!(busy.read_until_closed().await, "");
}
