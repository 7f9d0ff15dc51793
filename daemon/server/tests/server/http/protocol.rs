//! HTTP versions, persistent connections, probes, and requests that may not operate.

use hyper::{Request, Version};
use tokio::net::TcpStream;

use crate::support::client::encode_request;
use crate::support::connect_http2;
use crate::support::daemon::Daemon;

const CHECK: &str = r#"{"policy":"log","key":"a"}"#;

#[tokio::test]
async fn connections_stay_open_and_pipelined_requests_are_answered_in_order() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    assert_eq!(client.post("/v1/check", CHECK).await.unwrap().status, 200);
    assert_eq!(client.post("/v1/check", "{").await.unwrap().status, 400);
    let pipeline = encode_request("POST", "/v1/check", "", CHECK).repeat(3);
    client.send(&pipeline).await.unwrap();
    for status in [200, 429, 429] {
        assert_eq!(client.read_response().await.unwrap().status, status);
    }
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served() {
    let daemon = Daemon::start().await;
    let stream = TcpStream::connect(daemon.address).await.unwrap();
    let (mut sender, _connection) = connect_http2(stream).await;
    let url = format!("http://{}/v1/check", daemon.address);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let request = Request::post(&url).body(CHECK.to_owned()).unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 429]);
}

#[tokio::test]
async fn forwarded_and_cross_origin_requests_may_not_operate() {
    let daemon = Daemon::start().await;
    let inline = r#"{"limit":"1/s","key":"a"}"#;
    for header in ["", "x-forwarded-for: 10.0.0.1", "origin: http://example.com"] {
        let status = if header.is_empty() { 200 } else { 403 };
        for (operation, body) in [
            ("reset", CHECK),
            ("block", CHECK),
            ("unblock", CHECK),
            ("refund", CHECK),
            ("penalize", CHECK),
            ("peek", inline),
        ] {
            let response = daemon.post_with(&format!("/v1/{operation}"), header, body).await;
            assert_eq!(response.status, status, "{header} {operation}: {}", response.body);
            if status == 403 {
                assert!(
                    response.body.contains("is accepted from loopback only"),
                    "{}",
                    response.body
                );
            }
        }
        let response = daemon.post_with("/v1/peek", header, CHECK).await;
        assert_eq!(response.status, 200, "every client may query a policy");
    }
}

#[tokio::test]
async fn probes_answer_ok_and_wrong_methods_list_the_allowed_ones() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    for path in ["/livez", "/readyz"] {
        let response = client.get(path).await.unwrap();
        assert_eq!((response.status, &*response.body), (200, "ok\n"));
    }
    for (method, path, allow) in [
        ("PUT", "/v1/check", "POST"),
        ("DELETE", "/v1/peek", "GET, POST"),
        ("POST", "/livez", "GET, HEAD"),
    ] {
        let response = client.request(method, path, "").await.unwrap();
        assert_eq!((response.status, response.header("allow")), (405, Some(allow)));
    }
}
