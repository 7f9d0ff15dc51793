//! The HTTP endpoints of envoyproxy/ratelimit, compared with the document.

use std::collections::BTreeSet;

use super::coverage::Daemons;
use super::document::{DOCUMENT, assert_documented, operation};
use crate::http::access::bearer;
use crate::support::client::encode_request;
use crate::support::daemon::Daemon;

pub(super) const PATHS: [&str; 2] = ["/healthcheck", "/json"];

const CHECK: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#;
const REFUND: &str = r#"{"domain":"log","descriptors":[{"entries":[{"key":"k","value":"v"}],"isNegativeHits":true}]}"#;

#[tokio::test]
async fn every_documented_status_of_the_rate_limit_service_occurs() {
    let daemons = Daemons::start().await;
    let post = |body| encode_request("POST", "/json", "", body);
    let whole = post(CHECK);
    let incomplete = whole.strip_suffix('}').unwrap().to_owned();
    let large = "POST /json HTTP/1.1\r\nhost: t\r\ncontent-length: 999999\r\n\r\n".to_owned();
    let with_token = encode_request("POST", "/json", &bearer("nothing"), CHECK);
    let documented = operation("POST", "/json").unwrap()["responses"].as_object().unwrap();
    let mut missing: BTreeSet<u16> = documented.keys().map(|key| key.parse().unwrap()).collect();
    for (daemon, request, body, status) in [
        (&daemons.ordinary, whole.clone(), CHECK, 200),
        (&daemons.ordinary, whole.clone(), CHECK, 200),
        (&daemons.ordinary, whole.clone(), CHECK, 429),
        (&daemons.ordinary, post("{"), "", 400),
        (&daemons.ordinary, encode_request("GET", "/json", "", ""), "", 405),
        (&daemons.ordinary, large, "", 413),
        (&daemons.guarded, whole.clone(), CHECK, 401),
        (&daemons.guarded, with_token, CHECK, 403),
        (&daemons.impatient, incomplete, "", 408),
        (&daemons.without_store, post(REFUND), REFUND, 503),
    ] {
        let mut client = daemon.connect().await;
        client.send(&request).await.unwrap();
        let response = client.read_response().await.unwrap();
        assert_eq!(response.status, status, "{request}: {}", response.body);
        assert_documented("POST", "/json", body, &response);
        missing.remove(&status);
    }
    assert_eq!(missing, BTreeSet::new());
    assert!(DOCUMENT["paths"].get("/healthcheck").is_some());
}

#[tokio::test]
async fn healthcheck_fails_once_the_daemon_stops() {
    let mut daemon = Daemon::start().await;
    let mut client = daemon.connect().await;
    let response = client.get("/healthcheck").await.unwrap();
    assert_eq!((response.status, &*response.body), (200, "OK"));
    assert_documented("GET", "/healthcheck", "", &response);
    let response = daemon.post("/healthcheck", "").await;
    assert_eq!(response.status, 405);
    assert_documented("POST", "/healthcheck", "", &response);
    daemon.stop();
    let response = loop {
        let response = client.get("/healthcheck").await.unwrap();
        if response.status != 200 {
            break response;
        }
    };
    assert_eq!(response.status, 500);
    assert_documented("GET", "/healthcheck", "", &response);
}
