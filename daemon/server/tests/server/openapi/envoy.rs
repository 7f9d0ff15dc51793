//! What envoyproxy/ratelimit has over HTTP, held against the document.

use std::collections::BTreeSet;
use std::net::TcpListener;

use super::document::{DOCUMENT, hold, operation};
use crate::access::{bearer, token};
use crate::client::request;
use crate::daemon::Daemon;

pub(super) const PATHS: [&str; 2] = ["/healthcheck", "/json"];

const ASKED: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
const GIVEN_BACK: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}],"isNegativeHits":true}]}"#;

#[tokio::test]
async fn each_status_of_the_rate_limit_service_happens() {
    let guarded = Daemon::start_changed(|x| x.tokens = vec![token("nothing", "admin", "none")]);
    let guarded = guarded.await;
    let usual = Daemon::start().await;
    let slow = "limits: { header_timeout: 100ms }\npolicies: { log: { limits: [2/min log] } }";
    let slow = Daemon::start_with(slow).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let away = format!(
        "store: {{ url: 'redis://127.0.0.1:{port}' }}\npolicies: {{ log: {{ limits: [2/min log] }} }}"
    );
    let away = Daemon::start_on_store(&away).await;
    let whole = request("POST", "/json", ASKED);
    let beginning = whole.strip_suffix('}').unwrap().to_owned();
    let large = "POST /json HTTP/1.1\r\nhost: t\r\ncontent-length: 999999\r\n\r\n".to_owned();
    let token = request("POST", "/json", ASKED).replacen(
        "\r\n",
        &format!("\r\n{}\r\n", bearer("nothing")),
        1,
    );
    let told = operation("POST", "/json").unwrap()["responses"].as_object().unwrap();
    let mut left: BTreeSet<u16> = told.keys().map(|key| key.parse().unwrap()).collect();
    for (daemon, sent, body, status) in [
        (&usual, whole.clone(), ASKED, 200),
        (&usual, whole.clone(), ASKED, 200),
        (&usual, whole.clone(), ASKED, 429),
        (&usual, request("POST", "/json", "{"), "", 400),
        (&usual, request("GET", "/json", ""), "", 405),
        (&usual, large, "", 413),
        (&guarded, whole.clone(), ASKED, 401),
        (&guarded, token, ASKED, 403),
        (&slow, beginning, "", 408),
        (&away, request("POST", "/json", GIVEN_BACK), GIVEN_BACK, 503),
    ] {
        let mut client = daemon.connect().await;
        client.send(&sent).await.unwrap();
        let answer = client.answer().await.unwrap();
        assert_eq!(answer.status, status, "{sent}: {}", answer.body);
        hold("POST", "/json", body, &answer);
        left.remove(&status);
    }
    assert_eq!(left, BTreeSet::new());
    assert!(DOCUMENT["paths"].get("/healthcheck").is_some());
}

#[tokio::test]
async fn its_health_is_told_until_it_stops() {
    let mut daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let answer = client.get("/healthcheck").await.unwrap();
    assert_eq!((answer.status, &*answer.body), (200, "OK"));
    hold("GET", "/healthcheck", "", &answer);
    let answer = daemon.post("/healthcheck", "").await;
    assert_eq!(answer.status, 405);
    hold("POST", "/healthcheck", "", &answer);
    daemon.stop();
    let told = loop {
        let told = client.get("/healthcheck").await.unwrap();
        if told.status != 200 {
            break told;
        }
    };
    assert_eq!(told.status, 500);
    hold("GET", "/healthcheck", "", &told);
}
