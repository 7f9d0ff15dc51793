//! What cannot be asked: status, field, value and remedy, and nothing is charged.

use tollgate_core::MAX_KEY_LEN;

use crate::daemon::Daemon;
use crate::rows;

#[tokio::test]
async fn bad_input_is_named_and_charges_nothing() {
    let daemon = Daemon::start().await;
    let checked = rows::check_all(&daemon, include_str!("bad_input.rows")).await;
    assert!(checked > 70, "only {checked} rows were found");
    for policy in ["bucket", "log", "pair", "slots"] {
        for key in ["a", "b"] {
            let body = format!(r#"{{"policy":"{policy}","key":"{key}"}}"#);
            let untouched = daemon.post("/v1/inspect", &body).await.body;
            assert_eq!(untouched.matches(r#""used":0"#).count(), untouched.matches("used").count());
            assert!(untouched.contains(r#""block":null"#), "{untouched}");
        }
    }
}

#[tokio::test]
async fn a_key_has_at_most_65536_bytes() {
    let body = "limits: { body: 1MiB }\npolicies: { log: { limits: [2/min log] } }";
    let daemon = Daemon::start_with(body).await;
    for (bytes, status) in [(1, 200), (MAX_KEY_LEN, 200), (MAX_KEY_LEN + 1, 400)] {
        let key = "k".repeat(bytes);
        let answer =
            daemon.post("/v1/check", &format!(r#"{{"policy":"log","key":"{key}"}}"#)).await;
        assert_eq!(answer.status, status, "{bytes}: {}", answer.body);
        if status == 400 {
            assert!(answer.body.contains("key has 65537 bytes"), "{}", answer.body);
        }
    }
}

#[tokio::test]
async fn a_request_has_at_most_32_checks() {
    let daemon = Daemon::start().await;
    for (checks, status) in [(32, 200), (33, 400), (1_000, 400)] {
        let check = |x| format!(r#"{{"policy":"log","key":"{x}"}}"#);
        let list: Vec<_> = (0..checks).map(check).collect();
        let answer =
            daemon.post("/v1/check", &format!(r#"{{"checks":[{}]}}"#, list.join(","))).await;
        assert_eq!(answer.status, status, "{checks}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_body_of_any_depth_and_any_bytes_is_refused_and_no_more() {
    let daemon = Daemon::start().await;
    let deep = "[".repeat(60_000);
    let nested = format!(r#"{{"policy":{deep}"#);
    for body in [&*deep, &nested, "\0", "{\"policy\":\"\u{7f}\"}", "\u{feff}{}"] {
        assert_eq!(daemon.post("/v1/check", body).await.status / 100, 4);
    }
    let mut client = daemon.connect().await;
    client.send("POST /v1/check HTTP/1.1\r\nhost: t\r\ncontent-length: 3\r\n\r\n").await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut client.0, b"\xff{}").await.unwrap();
    let answer = client.answer().await.unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("not valid UTF-8 at byte 0"), "{}", answer.body);
}
