//! HTTP itself: both versions, connections that are kept, who may operate, health.

use hyper::client::conn::http2;
use hyper::{Request, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

use crate::client::request;
use crate::daemon::Daemon;

const CHECK: &str = r#"{"policy":"log","key":"a"}"#;

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request_and_pipelines_are_answered_in_order() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    assert_eq!(client.post("/v1/check", CHECK).await.unwrap().status, 200);
    assert_eq!(client.post("/v1/check", "{").await.unwrap().status, 400);
    let pipeline = request("POST", "/v1/check", CHECK).repeat(3);
    client.send(&pipeline).await.unwrap();
    for status in [200, 429, 429] {
        assert_eq!(client.answer().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn http2_is_spoken_without_being_asked_for() {
    let daemon = Daemon::start().await;
    let stream = TcpStream::connect(daemon.address).await.unwrap();
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let url = format!("http://{}/v1/check", daemon.address);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let asked = Request::post(&url).body(CHECK.to_owned()).unwrap();
        let answer = sender.send_request(asked).await.unwrap();
        assert_eq!(answer.version(), Version::HTTP_2);
        statuses.push(answer.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn what_was_passed_on_or_comes_from_a_web_page_does_not_operate() {
    let daemon = Daemon::start().await;
    let inline = r#"{"limit":"1/s","key":"a"}"#;
    for header in ["", "x-forwarded-for: 10.0.0.1\r\n", "origin: http://example.com\r\n"] {
        let status = if header.is_empty() { 200 } else { 403 };
        for (verb, body) in [
            ("reset", CHECK),
            ("block", CHECK),
            ("unblock", CHECK),
            ("refund", CHECK),
            ("penalize", CHECK),
            ("peek", inline),
        ] {
            let asked = request("POST", &format!("/v1/{verb}"), body);
            let asked = asked.replacen("\r\n", &format!("\r\n{header}"), 1);
            let mut client = daemon.connect().await;
            client.send(&asked).await.unwrap();
            let answer = client.answer().await.unwrap();
            assert_eq!(answer.status, status, "{header}{verb}: {}", answer.body);
            if status == 403 {
                assert!(answer.body.contains("is accepted from loopback only"), "{}", answer.body);
            }
        }
        let mut client = daemon.connect().await;
        let asked = request("POST", "/v1/peek", CHECK);
        client.send(&asked.replacen("\r\n", &format!("\r\n{header}"), 1)).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status, 200, "anybody may ask of a policy");
    }
}

#[tokio::test]
async fn health_is_told_and_a_wrong_method_is_told_the_right_ones() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    for path in ["/livez", "/readyz"] {
        let answer = client.get(path).await.unwrap();
        assert_eq!((answer.status, &*answer.body), (200, "ok\n"));
    }
    for (method, path, allow) in [
        ("PUT", "/v1/check", "POST"),
        ("DELETE", "/v1/peek", "GET, POST"),
        ("POST", "/livez", "GET, HEAD"),
    ] {
        let answer = client.ask(method, path, "").await.unwrap();
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)));
    }
}
