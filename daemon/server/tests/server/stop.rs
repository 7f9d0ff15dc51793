//! Stopping: what is under way is answered, and nobody is left without an answer.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::channel::Channel;
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tollgate_server::Stop;

use crate::client::Client;
use crate::daemon::{Daemon, POLICIES};

/// Asks again and again, as the daemon lets it, until nobody listens; how many were answered.
async fn ask_until_stopped(address: std::net::SocketAddr, answered: Arc<AtomicU32>) {
    let body = r#"{"policy":"bucket","key":"k","cost":0}"#;
    while let Ok(stream) = TcpStream::connect(address).await {
        let mut client = Client(stream);
        let mut is_taken = false;
        loop {
            let answer = match client.post("/v1/check", body).await {
                Ok(post) => post,
                // The system had connected it, and the daemon never took it: nobody listens.
                Err(error) if error.kind() == ErrorKind::ConnectionReset && !is_taken => {
                    assert!(TcpStream::connect(address).await.is_err(), "it was dropped: {error}");
                    return;
                }
                Err(error) => panic!("a request was not answered: {error}"),
            };
            assert_eq!(answer.status, 200);
            is_taken = true;
            answered.fetch_add(1, Ordering::Relaxed);
            if answer.header("connection") == Some("close") {
                break;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_request_that_was_taken_is_answered() {
    for stop in [Stop::WithoutDelay, Stop::AfterDelay] {
        let yaml = format!("drain: {{ delay: 200ms }}\n{POLICIES}");
        let mut daemon = Daemon::start_with(&yaml).await;
        let answered = Arc::new(AtomicU32::new(0));
        let ask = |_| tokio::spawn(ask_until_stopped(daemon.address, Arc::clone(&answered)));
        let clients: Vec<_> = (0..16).map(ask).collect();
        while answered.load(Ordering::Relaxed) < 500 {
            tokio::task::yield_now().await;
        }
        daemon.stop_as(stop);
        for client in clients {
            client.await.unwrap();
        }
        daemon.ended().await;
    }
}

#[tokio::test]
async fn for_its_delay_it_is_not_ready_and_serves_as_before() {
    let yaml = format!("drain: {{ delay: 1s }}\n{POLICIES}");
    let mut daemon = Daemon::start_with(&yaml).await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    let began = Instant::now();
    daemon.stop_as(Stop::AfterDelay);
    for address in [daemon.address, daemon.scraped] {
        let mut probe = Client::connect(address).await;
        while probe.get("/readyz").await.unwrap().status != 503 {}
    }
    let body = r#"{"policy":"bucket","key":"k","cost":0}"#;
    let mut new = daemon.connect().await;
    for client in [&mut kept, &mut new] {
        let answer = client.post("/v1/check", body).await.unwrap();
        assert_eq!((answer.status, answer.header("connection")), (200, None));
    }
    // Whoever goes on asking is told when it is over.
    while new.post("/v1/check", body).await.unwrap().header("connection") != Some("close") {}
    assert!(began.elapsed() >= Duration::from_secs(1));
    assert_eq!(new.closed().await, "");
    drop(kept);
    daemon.ended().await;
}

#[tokio::test]
async fn a_request_under_way_is_finished_and_idle_connections_are_closed() {
    let mut daemon = Daemon::start().await;
    let mut idle = daemon.connect().await;
    idle.get("/livez").await.unwrap();
    let mut silent = daemon.connect().await;
    let mut busy = daemon.connect().await;
    let body = r#"{"policy":"log","key":"a"}"#;
    let head = format!("POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n", body.len());
    // Its head is taken when it is told to send its body.
    busy.send(&format!("{head}expect: 100-continue\r\n\r\n")).await.unwrap();
    assert_eq!(busy.answer().await.unwrap().status, 100);
    daemon.stop();
    assert_eq!(idle.closed().await, "");
    assert_eq!(silent.closed().await, "");
    busy.send(body).await.unwrap();
    let answer = busy.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert_eq!(busy.closed().await, "");
    daemon.ended().await;
}

#[tokio::test]
async fn a_request_under_way_over_http2_is_finished_too() {
    let mut daemon = Daemon::start().await;
    let stream = TcpStream::connect(daemon.address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    let connection = tokio::spawn(connection);
    let url = format!("http://{}/v1/check", daemon.address);
    let (mut body, receiver) = Channel::<Bytes>::new(1);
    let answer = sender.send_request(Request::post(&url).body(receiver).unwrap());
    body.send_data(Bytes::from(r#"{"policy":"log","#)).await.unwrap();
    // Another stream is answered, so this one has been taken.
    let (_, nothing) = Channel::<Bytes>::new(1);
    let live = format!("http://{}/livez", daemon.address);
    let mut other = sender.clone();
    let live = other.send_request(Request::get(live).body(nothing).unwrap());
    assert_eq!(live.await.unwrap().status(), 200);
    daemon.stop();
    while TcpStream::connect(daemon.address).await.is_ok() {}
    body.send_data(Bytes::from(r#""key":"h2"}"#)).await.unwrap();
    drop(body);
    assert_eq!(answer.await.unwrap().status(), 200);
    connection.await.unwrap().unwrap();
    daemon.ended().await;
}

#[tokio::test]
async fn while_stopping_it_is_not_ready() {
    let mut daemon = Daemon::start().await;
    let mut probe = daemon.connect().await;
    assert_eq!(probe.get("/readyz").await.unwrap().status, 200);
    daemon.stop();
    // It was answered just now, so it is waited for.
    while let Ok(answer) = probe.get("/readyz").await {
        if answer.status == 503 {
            assert_eq!(answer.body, "draining\n");
            return daemon.ended().await;
        }
    }
    panic!("the connection was closed without an answer");
}

#[tokio::test]
async fn what_does_not_end_is_cut_in_the_end() {
    let yaml = "drain: { timeout: 100ms }\npolicies: { log: { limits: [2/min log] } }";
    let mut daemon = Daemon::start_with(yaml).await;
    let mut busy = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n";
    busy.send(&format!("{head}expect: 100-continue\r\n\r\n")).await.unwrap();
    assert_eq!(busy.answer().await.unwrap().status, 100);
    daemon.stop();
    daemon.ended().await;
    assert_eq!(busy.closed().await, "");
}
