//! Slow and hostile peers: each is bounded, and the others do not notice.

use std::time::Duration;

use tokio::time::timeout;

use crate::attack::{assert_others_are_served, while_others_are_served};
use crate::client::request;
use crate::daemon::{Daemon, POLICIES};

/// Bounds that a test need not wait for.
async fn impatient(limits: &str) -> Daemon {
    Daemon::start_with(&format!("limits: {{ {limits} }}\n{POLICIES}")).await
}

#[tokio::test]
async fn a_head_that_does_not_come_is_waited_for_no_longer_than_allowed() {
    let daemon = impatient("header_timeout: 1s").await;
    let mut slow = Vec::new();
    for beginning in ["", "P", "POST /v1/check HTTP/1.1\r\nhost: test\r\nx-slow: "] {
        let mut client = daemon.connect().await;
        client.send(beginning).await.unwrap();
        slow.push(client);
    }
    assert_others_are_served(&daemon).await;
    for client in &mut slow {
        assert_eq!(client.closed().await, "");
    }
}

#[tokio::test]
async fn a_head_that_trickles_is_cut_also_on_a_connection_that_has_asked_before() {
    let daemon = impatient("header_timeout: 1s, idle: 1h").await;
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
async fn an_idle_connection_is_kept_longer_than_a_head_may_take() {
    let daemon = impatient("header_timeout: 1s, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    // A peer that says nothing is closed meanwhile.
    assert_eq!(daemon.connect().await.closed().await, "");
    assert_eq!(daemon.connect().await.closed().await, "");
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_the_end() {
    let daemon = impatient("header_timeout: 1s, idle: 100ms").await;
    let mut idle = daemon.connect().await;
    idle.get("/livez").await.unwrap();
    assert_eq!(idle.closed().await, "");
}

#[tokio::test]
async fn a_body_that_does_not_come_is_told_so() {
    let daemon = impatient("header_timeout: 1s").await;
    let mut slow = daemon.connect().await;
    slow.send("POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-length: 100\r\n\r\n{")
        .await
        .unwrap();
    assert_others_are_served(&daemon).await;
    let answer = slow.answer().await.unwrap();
    assert_eq!(answer.status, 408, "{}", answer.body);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(slow.closed().await, "");
}

#[tokio::test]
async fn a_large_body_is_refused_before_it_is_read() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-length: 1000000000\r\n\r\n";
    client.send(head).await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status, 413, "{}", answer.body);
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(client.closed().await, "");
    let body = "x".repeat(65_537);
    assert_eq!(daemon.post("/v1/check", &body).await.status, 413);
    let body = "x".repeat(65_536);
    assert_eq!(daemon.post("/v1/check", &body).await.status, 400);
}

#[tokio::test]
async fn a_body_without_a_length_is_bounded_as_it_comes() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: test\r\ntransfer-encoding: chunked\r\n\r\n";
    client.send(head).await.unwrap();
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4_096));
    // The daemon stops reading at some point, and may have closed before the last of these.
    for _ in 0..17 {
        let _ = client.send(&chunk).await;
    }
    assert_eq!(client.answer().await.unwrap().status, 413);
    let mut client = daemon.connect().await;
    let body = r#"{"policy":"log","key":"chunks"}"#;
    let (first, second) = body.split_at(9);
    client.send(head).await.unwrap();
    for part in [first, second] {
        client.send(&format!("{:x}\r\n{part}\r\n", part.len())).await.unwrap();
    }
    client.send("0\r\n\r\n").await.unwrap();
    assert_eq!(client.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let daemon = Daemon::start().await;
    let many = "x: y\r\n".repeat(1_000);
    let long = format!("x: {}\r\n", "y".repeat(100_000));
    for headers in [many, long] {
        let mut client = daemon.connect().await;
        let _ = client.send(&format!("GET /livez HTTP/1.1\r\nhost: t\r\n{headers}\r\n")).await;
        // It may be reset before its answer is read: more of it was sent than was taken.
        if let Ok(answer) = client.answer().await {
            assert_eq!(answer.status, 431, "{}", answer.body);
        }
        client.closed().await;
        assert_others_are_served(&daemon).await;
    }
}

#[tokio::test]
async fn bodies_that_trickle_are_told_so_while_others_are_served() {
    let daemon = impatient("header_timeout: 1s").await;
    let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 1000\r\n\r\n";
    while_others_are_served(&daemon, async || {
        let mut slow = Vec::new();
        for _ in 0..64 {
            let mut client = daemon.connect().await;
            client.send(head).await.unwrap();
            slow.push(client);
        }
        // Each byte comes in time; the whole does not.
        while timeout(Duration::from_millis(20), slow[0].0.readable()).await.is_err() {
            for client in &mut slow {
                let _ = client.send(" ").await;
            }
        }
        for client in &mut slow {
            let answer = client.answer().await.unwrap();
            assert_eq!((answer.status, answer.header("connection")), (408, Some("close")));
        }
    })
    .await;
}

#[tokio::test]
async fn a_body_without_an_end_is_cut_at_the_bound() {
    const BUFFERED: usize = 16 * 1024 * 1024;
    let daemon = impatient("header_timeout: 1h").await;
    while_others_are_served(&daemon, async || {
        let mut endless = daemon.connect().await;
        let head = "POST /v1/check HTTP/1.1\r\nhost: t\r\ntransfer-encoding: chunked\r\n\r\n";
        endless.send(head).await.unwrap();
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
        let mut sent = 0;
        while endless.send(&chunk).await.is_ok() {
            sent += chunk.len();
            // What the sockets of both sides hold comes on top of the bound.
            assert!(sent < BUFFERED, "{sent} bytes of a body were taken");
        }
    })
    .await;
}

#[tokio::test]
async fn a_head_without_an_end_is_cut_at_the_bound() {
    const BUFFERED: usize = 16 * 1024 * 1024;
    let daemon = impatient("header_timeout: 1h").await;
    let many = "x: y\r\n".repeat(1_000);
    let long = "y".repeat(6_000);
    while_others_are_served(&daemon, async || {
        for part in [&many, &long] {
            let mut endless = daemon.connect().await;
            endless.send("GET /livez HTTP/1.1\r\nhost: t\r\nx: ").await.unwrap();
            let mut sent = 0;
            while endless.send(part).await.is_ok() {
                sent += part.len();
                assert!(sent < BUFFERED, "{sent} bytes of a head were taken");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn who_asks_nothing_makes_room_for_who_does() {
    let daemon = impatient("connections: 8, header_timeout: 1h, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    let mut silent = Vec::new();
    for beginning in ["", "P", "", "POST /v1/check HTTP/1.1\r\nx-slow: ", "", "", ""] {
        let mut client = daemon.connect().await;
        client.send(beginning).await.unwrap();
        silent.push(client);
    }
    for _ in 0..3 {
        // It is accepted when one of the others has been silent for a while.
        let mut late = daemon.connect().await;
        let answer = late.post("/v1/check", r#"{"policy":"bucket","key":"l","cost":0}"#).await;
        assert_eq!(answer.unwrap().status, 200);
        silent.push(late);
    }
    // Who has asked before was not the first to go.
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn where_all_have_asked_the_idle_make_room() {
    let daemon = impatient("connections: 2, header_timeout: 1h, idle: 1h").await;
    let mut idle = Vec::new();
    for _ in 0..4 {
        let mut client = daemon.connect().await;
        assert_eq!(client.get("/livez").await.unwrap().status, 200);
        idle.push(client);
    }
    // The other listener has places of its own.
    let mut probe = crate::client::Client::connect(daemon.scraped).await;
    assert_eq!(probe.get("/readyz").await.unwrap().status, 200);
    assert_eq!(probe.get("/v1/check").await.unwrap().status, 404);
}

#[tokio::test]
async fn many_connections_that_ask_nothing_do_not_slow_the_others() {
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
        let rest = request("POST", "/v1/check", r#"{"policy":"log","key":"m","cost":0}"#);
        client.send(rest.strip_prefix("POST /v1/che").unwrap()).await.unwrap();
        assert_eq!(client.answer().await.unwrap().status, 200);
    }
}
