//! The document that describes the interface, held against what the daemon takes and answers.

mod coverage;
mod document;
mod envoy;
mod gateways;
mod schema;

use crate::access;
use crate::assert_up_to_date;
use crate::daemon::Daemon;

pub(crate) use document::hold;

#[tokio::test]
async fn the_checked_in_document_is_the_one_that_is_served() {
    let daemon = Daemon::start().await;
    let served = daemon.connect().await.get("/openapi.json").await.unwrap();
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_up_to_date("docs/openapi.json", &served.body);
}

#[tokio::test]
async fn with_tokens_the_document_is_for_whoever_has_one() {
    let daemon = access::start().await;
    let mut client = daemon.connect().await;
    assert_eq!(client.get("/openapi.json").await.unwrap().status, 401);
    let asked =
        format!("GET /openapi.json HTTP/1.1\r\nhost: t\r\n{}\r\n\r\n", access::bearer("read"));
    client.send(&asked).await.unwrap();
    assert_eq!(client.answer().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_path_that_is_nearly_one_is_suggested() {
    let daemon = Daemon::start().await;
    let answer = daemon.connect().await.get("/openapi.jsn").await.unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.body.contains("did you mean \\\"/openapi.json\\\"?"), "{}", answer.body);
}
