//! Slow and hostile clients: each is limited, and other clients are served meanwhile.

use std::time::Duration;

use tokio::time::timeout;

use crate::support::bystanders::{assert_others_are_served, while_others_are_served};
use crate::support::client::{Client, encode_request};
use crate::support::daemon::{Daemon, POLICIES};

/// More than the sockets of both sides buffer.
const MAX_BUFFERED: usize = 16 * 1024 * 1024;

/// Starts a daemon with other limits, such as short timeouts.
async fn start_with_limits(limits: &str) -> Daemon {
    Daemon::start_with(&format!("limits: {{ {limits} }}\n{POLICIES}")).await
}

#[tokio::test]
async fn incomplete_heads_are_closed_after_the_header_timeout() {
    let daemon = start_with_limits("header_timeout: 1s").await;
    let mut slow = Vec::new();
    for beginning in ["", "P", "POST /v1/check HTTP/1.1\r\nhost: test\r\nx-slow: "] {
        let mut client = daemon.connect().await;
        client.send(beginning).await.unwrap();
        slow.push(client);
    }
    assert_others_are_served(&daemon).await;
    for client in &mut slow {
        assert_eq!(client.read_until_closed().await, "");
    }
}

#[tokio::test]
async fn trickling_heads_are_closed_on_reused_connections() {
    let daemon = start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut slow = daemon.connect().await;
    slow.get("/livez").await.unwrap();
    slow.send("GET /livez HTTP/1.1\r\n").await.unwrap();
    let (mut reader, mut writer) = slow.0.split();
    let trickle = async {
        while tokio::io::AsyncWriteExt::write_all(&mut writer, b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut rest = Vec::new();
    let closed = tokio::io::AsyncReadExt::read_to_end(&mut reader, &mut rest);
    tokio::select! { () = trickle => {}, _ = closed => {} }
    assert_eq!(rest, b"");
    assert_others_are_served(&daemon).await;
}

#[tokio::test]
async fn idle_connections_outlive_the_header_timeout() {
    let daemon = start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    // Silent connections are closed meanwhile.
    assert_eq!(daemon.connect().await.read_until_closed().await, "");
    assert_eq!(daemon.connect().await.read_until_closed().await, "");
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_are_closed_after_the_idle_timeout() {
    let daemon = start_with_limits("header_timeout: 1s, idle: 100ms").await;
    let mut idle = daemon.connect().await;
    idle.get("/livez").await.unwrap();
    assert_eq!(idle.read_until_closed().await, "");
}

#[tokio::test]
async fn incomplete_bodies_are_answered_with_408() {
    let daemon = start_with_limits("header_timeout: 1s").await;
    let mut slow = daemon.connect().await;
    slow.send("POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n{")
        .await
        .unwrap();
    assert_others_are_served(&daemon).await;
    let response = slow.read_response().await.unwrap();
    assert_eq!(response.status, 408, "{}", response.body);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(slow.read_until_closed().await, "");
}

#[tokio::test]
async fn bodies_over_the_limit_are_rejected_before_they_are_read() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000000\r\n\r\n";
    client.send(head).await.unwrap();
    let response = client.read_response().await.unwrap();
    assert_eq!(response.status, 413, "{}", response.body);
    assert_eq!(response.header("connection"), Some("close"));
    assert_eq!(client.read_until_closed().await, "");
    let body = "x".repeat(65_537);
    assert_eq!(daemon.post("/v1/check", &body).await.status, 413);
    let body = "x".repeat(65_536);
    assert_eq!(daemon.post("/v1/check", &body).await.status, 400);
}

#[tokio::test]
async fn chunked_bodies_over_the_limit_are_rejected() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(head).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4_096));
    // The daemon stops reading at some point and may close before the last chunk.
    for _ in 0..17 {
        let _ = client.send(&chunk).await;
    }
    assert_eq!(client.read_response().await.unwrap().status, 413);
    let mut client = daemon.connect().await;
    let body = r#"{"policy":"log","key":"chunks"}"#;
    let (first, second) = body.split_at(9);
    client.send(head).await.unwrap();
    for part in [first, second] {
        client.send(&format!("{:x}\r\n{part}\r\n", part.len())).await.unwrap();
    }
    client.send("0\r\n\r\n").await.unwrap();
    assert_eq!(client.read_response().await.unwrap().status, 200);
}

#[tokio::test]
async fn too_many_headers_are_rejected() {
    let daemon = Daemon::start().await;
    let many = "x: y\r\n".repeat(1_000);
    let long = format!("x: {}\r\n", "y".repeat(100_000));
    for headers in [many, long] {
        let mut client = daemon.connect().await;
        let _ = client.send(&format!("GET /livez HTTP/1.1\r\nhost: t\r\n{headers}\r\n")).await;
        // The connection may be reset before the response is read, because of unread bytes.
        if let Ok(response) = client.read_response().await {
            assert_eq!(response.status, 431, "{}", response.body);
        }
        client.read_until_closed().await;
        assert_others_are_served(&daemon).await;
    }
}

#[tokio::test]
async fn trickling_bodies_are_answered_with_408() {
    let daemon = start_with_limits("header_timeout: 1s").await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n\r\n";
    while_others_are_served(&daemon, async || {
        let mut slow = Vec::new();
        for _ in 0..64 {
            let mut client = daemon.connect().await;
            client.send(head).await.unwrap();
            slow.push(client);
        }
        // Each byte arrives in time; the whole body does not.
        while timeout(Duration::from_millis(20), slow[0].0.readable()).await.is_err() {
            for client in &mut slow {
                let _ = client.send(" ").await;
            }
        }
        for client in &mut slow {
            let response = client.read_response().await.unwrap();
            assert_eq!((response.status, response.header("connection")), (408, Some("close")));
        }
    })
    .await;
}

#[tokio::test]
async fn endless_bodies_are_cut_at_the_limit() {
    let daemon = start_with_limits("header_timeout: 1h").await;
    while_others_are_served(&daemon, async || {
        let mut endless = daemon.connect().await;
        let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n";
        endless.send(head).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
        let mut sent = 0;
        while endless.send(&chunk).await.is_ok() {
            sent += chunk.len();
            // The socket buffers of both sides add to the limit.
            assert!(sent < MAX_BUFFERED, "{sent} bytes of a body were accepted");
        }
    })
    .await;
}

#[tokio::test]
async fn endless_heads_are_cut_at_the_limit() {
    let daemon = start_with_limits("header_timeout: 1h").await;
    let many = "x: y\r\n".repeat(1_000);
    let long = "y".repeat(6_000);
    while_others_are_served(&daemon, async || {
        for part in [&many, &long] {
            let mut endless = daemon.connect().await;
            endless.send("GET /livez HTTP/1.1\r\nhost: t\r\nx: ").await.unwrap();
            let mut sent = 0;
            while endless.send(part).await.is_ok() {
                sent += part.len();
                assert!(sent < MAX_BUFFERED, "{sent} bytes of a head were accepted");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn silent_connections_are_evicted_first() {
    let daemon = start_with_limits("connections: 8, header_timeout: 1h, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    let mut silent = Vec::new();
    for beginning in ["", "P", "", "POST /v1/check HTTP/1.1\r\nx-slow: ", "", "", ""] {
        let mut client = daemon.connect().await;
        client.send(beginning).await.unwrap();
        silent.push(client);
    }
    for _ in 0..3 {
        // It is accepted once another connection has been silent long enough.
        let mut late = daemon.connect().await;
        let response = late.post("/v1/check", r#"{"policy":"bucket","key":"l","cost":0}"#).await;
        assert_eq!(response.unwrap().status, 200);
        silent.push(late);
    }
    // The connection that has sent a request was not evicted first.
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_are_evicted_at_the_connection_limit() {
    let daemon = start_with_limits("connections: 2, header_timeout: 1h, idle: 1h").await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut client = daemon.connect().await;
        assert_eq!(client.get("/livez").await.unwrap().status, 200);
        idle.push(client);
    }
    // The limit of the metrics listener is separate.
    let mut probe = Client::connect(daemon.metrics).await;
    assert_eq!(probe.get("/readyz").await.unwrap().status, 200);
    assert_eq!(probe.get("/v1/check").await.unwrap().status, 404);
}

#[tokio::test]
async fn many_silent_connections_do_not_delay_other_clients() {
    let daemon = Daemon::start().await;
    let mut silent = Vec::new();
    for _ in 0..500 {
        silent.push(daemon.connect().await);
    }
    for client in &mut silent {
        client.send("POST /v1/che").await.unwrap();
    }
    assert_others_are_served(&daemon).await;
    for client in &mut silent {
        let rest =
            encode_request("POST", "/v1/check", "", r#"{"policy":"log","key":"m","cost":0}"#);
        client.send(rest.strip_prefix("POST /v1/che").unwrap()).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status, 200);
    }
}
