//! Slow and hostile clients: each is limited, and other clients are served meanwhile.

use std::cell::Cell;
use std::iter::once;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::support::client::{Client, Response, encode_request};
use crate::support::daemon::Daemon;

/// More than the sockets of both sides buffer.
const MAX_BUFFERED: usize = 16 * 1024 * 1024;
/// The head of a check, without the header for the length of its body.
const HEAD: &str = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n";
/// A check with cost 0, which is always allowed.
const CHECK: &str = r#"{"policy":"bucket","key":"o","cost":0}"#;

/// Asserts that a new connection is served, and served again.
async fn assert_others_are_served(daemon: &Daemon) {
    let mut client = daemon.connect().await;
    for _ in 0..2 {
        assert_eq!(client.post("/v1/check", CHECK).await.unwrap().status, 200);
    }
}

/// Repeats an attack until other clients have been served often enough meanwhile. They send
/// requests without a pause, on new and on kept connections, and each request must be answered.
async fn while_others_are_served(daemon: &Daemon, mut attack: impl AsyncFnMut()) {
    const ROUNDS: u32 = 10;
    let mut kept = daemon.connect().await;
    let served = Cell::new(0);
    let attack = async {
        loop {
            attack().await;
            if served.get() >= ROUNDS {
                return;
            }
        }
    };
    let others = async {
        loop {
            assert_eq!(kept.post("/v1/check", CHECK).await.unwrap().status, 200);
            assert_others_are_served(daemon).await;
            served.set(served.get() + 1);
        }
    };
    tokio::select! { () = attack => {}, () = others => {} }
    assert_others_are_served(daemon).await;
}

/// Asserts that a response has this status and closes the connection.
fn assert_closing(status: u16, response: &Response) {
    response.assert(status, "", "the status");
    assert_eq!(response.header("connection"), Some("close"));
}

#[tokio::test]
async fn incomplete_heads_are_closed_after_the_header_timeout() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s").await;
    let mut slow = Vec::new();
    for beginning in ["", "P", "POST /v1/check HTTP/1.1\r\nhost: localhost\r\nx-slow: "] {
        slow.push(daemon.send(beginning).await);
    }
    assert_others_are_served(&daemon).await;
    for client in &mut slow {
        assert_eq!(client.read_until_closed().await, "");
    }
}

#[tokio::test]
async fn trickling_heads_are_closed_on_reused_connections() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut slow = daemon.connect().await;
    slow.get("/livez").await.unwrap();
    slow.send("GET /livez HTTP/1.1\r\n").await.unwrap();
    let (mut reader, mut writer) = slow.0.split();
    let trickle = async {
        while writer.write_all(b"x: y\r\n").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut rest = Vec::new();
    let closed = reader.read_to_end(&mut rest);
    tokio::select! { () = trickle => {}, _ = closed => {} }
    assert_eq!(rest, b"");
    assert_others_are_served(&daemon).await;
}

#[tokio::test]
async fn idle_connections_outlive_the_header_timeout() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    // Silent connections are closed meanwhile.
    assert_eq!(daemon.connect().await.read_until_closed().await, "");
    assert_eq!(daemon.connect().await.read_until_closed().await, "");
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_are_closed_after_the_idle_timeout() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s, idle: 100ms").await;
    let mut idle = daemon.connect().await;
    idle.get("/livez").await.unwrap();
    assert_eq!(idle.read_until_closed().await, "");
}

#[tokio::test]
async fn incomplete_bodies_are_answered_with_408() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s").await;
    let mut slow = daemon.send(&format!("{HEAD}content-length: 100\r\n\r\n{{")).await;
    assert_others_are_served(&daemon).await;
    assert_closing(408, &slow.read_response().await.unwrap());
    assert_eq!(slow.read_until_closed().await, "");
}

#[tokio::test]
async fn bodies_over_the_limit_are_rejected_before_they_are_read() {
    let daemon = Daemon::start().await;
    let mut client = daemon.send(&format!("{HEAD}content-length: 1000000000\r\n\r\n")).await;
    assert_closing(413, &client.read_response().await.unwrap());
    assert_eq!(client.read_until_closed().await, "");
    for (length, status) in [(65_537, 413), (65_536, 400)] {
        assert_eq!(daemon.post("/v1/check", &"x".repeat(length)).await.status, status);
    }
}

#[tokio::test]
async fn chunked_bodies_over_the_limit_are_rejected() {
    let daemon = Daemon::start().await;
    let head = format!("{HEAD}transfer-encoding: chunked\r\n\r\n");
    let mut client = daemon.send(&head).await;
    let chunk = format!("1000\r\n{}\r\n", "x".repeat(4_096));
    // The daemon stops reading at some point and may close before the last chunk.
    for _ in 0..17 {
        let _ = client.send(&chunk).await;
    }
    assert_eq!(client.read_response().await.unwrap().status, 413);
    let mut client = daemon.send(&head).await;
    let (first, second) = CHECK.split_at(9);
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
    let long = |length| format!("x: {}\r\n", "y".repeat(length));
    for headers in [many, long(33_000), long(100_000), long(900_000)] {
        let mut client = daemon.connect().await;
        let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        // The daemon reads the rest of the head, so that its response is not lost.
        client.send(&head).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.status, 431, "{}", response.body);
        client.read_until_closed().await;
        assert_others_are_served(&daemon).await;
    }
}

/// The rest of the head arrives after the response.
#[tokio::test]
async fn control_bytes_in_headers_are_answered_with_400() {
    let daemon = Daemon::start().await;
    let is_control = |byte: &u8| byte.is_ascii_control() && !b"\t\r\n".contains(byte);
    for byte in (0..=127).filter(is_control) {
        let byte = char::from(byte);
        let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx: a{byte}b\r\n");
        let mut client = daemon.send(&head).await;
        client.send(&format!("y: {}\r\n\r\n", "y".repeat(20_000))).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status, 400, "{byte:?}");
    }
}

#[tokio::test]
async fn trickling_bodies_are_answered_with_408() {
    let daemon = Daemon::start_with_limits("header_timeout: 1s").await;
    let head = format!("{HEAD}content-length: 1000\r\n\r\n");
    while_others_are_served(&daemon, async || {
        let mut slow = Vec::new();
        for _ in 0..64 {
            slow.push(daemon.send(&head).await);
        }
        // Each byte arrives in time; the whole body does not.
        while timeout(Duration::from_millis(20), slow[0].0.readable()).await.is_err() {
            for client in &mut slow {
                let _ = client.send(" ").await;
            }
        }
        for client in &mut slow {
            assert_closing(408, &client.read_response().await.unwrap());
        }
    })
    .await;
}

#[tokio::test]
async fn endless_requests_are_cut_at_the_limit() {
    let daemon = Daemon::start_with_limits("header_timeout: 1h").await;
    let get = "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: ".to_owned();
    let requests = [
        (
            format!("{HEAD}transfer-encoding: chunked\r\n\r\n"),
            format!("10000\r\n{}\r\n", "x".repeat(65_536)),
        ),
        (get.clone(), "x: y\r\n".repeat(1_000)),
        (get, "y".repeat(6_000)),
    ];
    while_others_are_served(&daemon, async || {
        for (beginning, part) in &requests {
            let mut endless = daemon.send(beginning).await;
            let mut sent = 0;
            while endless.send(part).await.is_ok() {
                sent += part.len();
                // The socket buffers of both sides add to the limit.
                assert!(sent < MAX_BUFFERED, "{sent} bytes were accepted after {beginning}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn silent_connections_are_evicted_first() {
    let daemon = Daemon::start_with_limits("connections: 8, header_timeout: 1h, idle: 1h").await;
    let mut kept = daemon.connect().await;
    kept.get("/livez").await.unwrap();
    let mut silent = Vec::new();
    for beginning in ["", "P", "", "POST /v1/check HTTP/1.1\r\nx-slow: ", "", "", ""] {
        silent.push(daemon.send(beginning).await);
    }
    // It has been idle for a shorter time than the others.
    kept.get("/livez").await.unwrap();
    for _ in 0..3 {
        // It is accepted once another connection has been silent long enough.
        let mut late = daemon.connect().await;
        assert_eq!(late.post("/v1/check", CHECK).await.unwrap().status, 200);
        silent.push(late);
    }
    // The connection that has sent a request was not evicted first.
    assert_eq!(kept.get("/livez").await.unwrap().status, 200);
}

#[tokio::test]
async fn idle_connections_are_evicted_at_the_connection_limit() {
    let daemon = Daemon::start_with_limits("connections: 2, header_timeout: 1h, idle: 1h").await;
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
    let request = encode_request("POST", "/v1/check", "", CHECK);
    for client in &mut silent {
        client.send(request.strip_prefix("POST /v1/che").unwrap()).await.unwrap();
        assert_eq!(client.read_response().await.unwrap().status, 200);
    }
}

/// The beginning of an HTTP/2 connection, the types of frames, and flags.
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
const GOAWAY: u8 = 7;
const END_HEADERS: u8 = 4;
const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM_AND_HEADERS: u8 = 5;
/// The error code for excessive load.
const ENHANCE_YOUR_CALM: u32 = 11;
/// The headers of `GET /` at `http://t`, in HPACK.
const REQUEST: &[u8] = &[0x82, 0x86, 0x84, 0x41, 0x01, b't'];

/// Encodes a frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// Sends the preface, then `attack` repeatedly until the daemon closes the connection. Returns the
/// error code of its GOAWAY frame, if it sent one.
async fn attack_until_closed(client: Client, mut attack: impl FnMut() -> Vec<u8>) -> Option<u32> {
    let (mut reader, mut writer) = client.0.into_split();
    let attacking = tokio::spawn({
        let begin = [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat();
        let rounds: Vec<_> = (0..64).map(|_| attack()).collect();
        async move {
            for round in once(begin).chain(rounds) {
                if writer.write_all(&round).await.is_err() {
                    return true;
                }
            }
            // Otherwise a connection that is still open would wait forever.
            writer.shutdown().await.is_err()
        }
    });
    let mut code = None;
    let mut head = [0; 9];
    while reader.read_exact(&mut head).await.is_ok() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        if reader.read_exact(&mut payload).await.is_err() {
            break;
        }
        if head[3] == GOAWAY {
            code = Some(u32::from_be_bytes(payload[4..8].try_into().unwrap()));
        }
    }
    attacking.await.unwrap();
    code
}

#[tokio::test]
async fn rapid_resets_close_the_connection() {
    let daemon = Daemon::start().await;
    while_others_are_served(&daemon, async || {
        let mut stream = 1;
        let code = attack_until_closed(daemon.connect().await, || {
            let mut round = Vec::new();
            for _ in 0..200 {
                round.extend(frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST));
                round.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
                stream += 2;
            }
            round
        });
        assert_eq!(code.await, Some(ENHANCE_YOUR_CALM));
    })
    .await;
}

#[tokio::test]
async fn endless_continuation_frames_close_the_connection() {
    let daemon = Daemon::start().await;
    while_others_are_served(&daemon, async || {
        let mut is_begun = false;
        let code = attack_until_closed(daemon.connect().await, || {
            let mut round = Vec::new();
            if !std::mem::replace(&mut is_begun, true) {
                round.extend(frame(HEADERS, 0, 1, REQUEST));
            }
            for _ in 0..100 {
                round.extend(frame(CONTINUATION, 0, 1, &[]));
            }
            round
        });
        assert_eq!(code.await, Some(ENHANCE_YOUR_CALM));
    })
    .await;
}

#[tokio::test]
async fn floods_of_frames_do_not_delay_other_clients() {
    let daemon = Daemon::start().await;
    // The first part opens a stream for the frames of requests.
    let opened = frame(HEADERS, END_HEADERS, 1, REQUEST);
    for (first, flood) in [
        (Vec::new(), frame(PING, 0, 0, &[7; 8])),
        (Vec::new(), frame(SETTINGS, 0, 0, &[])),
        (Vec::new(), frame(PRIORITY, 0, 1, &[0, 0, 0, 0, 16])),
        (opened, frame(DATA, 0, 1, &[])),
    ] {
        while_others_are_served(&daemon, async || {
            let mut first = first.clone();
            let attack = || [std::mem::take(&mut first), flood.repeat(1_000)].concat();
            attack_until_closed(daemon.connect().await, attack).await;
        })
        .await;
    }
}

#[tokio::test]
async fn compressed_bodies_are_not_decompressed() {
    let daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let head = format!("{HEAD}content-encoding: gzip\r\ncontent-length: 4\r\n\r\n");
    client.0.write_all(&[head.as_bytes(), b"\x1f\x8b\x08\x00"].concat()).await.unwrap();
    let response = client.read_response().await.unwrap();
    response.assert(400, "not valid UTF-8", "a body in gzip");
}
