//! The OpenAPI document, compared with the requests and responses of the daemon.

mod coverage;
mod document;
mod envoy;
mod gateways;
mod schema;

use crate::assert_up_to_date;
use crate::http::access;
use crate::support::daemon::Daemon;

pub(crate) use document::assert_documented;

#[tokio::test]
async fn the_checked_in_document_is_the_one_that_is_served() {
    let daemon = Daemon::start().await;
    let served = daemon.connect().await.get("/openapi.json").await.unwrap();
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    assert_up_to_date("docs/openapi.json", &served.body);
}

#[tokio::test]
async fn the_document_requires_a_token_when_tokens_are_configured() {
    let daemon = access::start().await;
    let mut client = daemon.connect().await;
    assert_eq!(client.get("/openapi.json").await.unwrap().status, 401);
    let token = access::bearer("read");
    let response = client.request_with("GET", "/openapi.json", &token, "").await.unwrap();
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn a_misspelled_path_gets_a_suggestion() {
    let daemon = Daemon::start().await;
    let response = daemon.connect().await.get("/openapi.jsn").await.unwrap();
    assert_eq!(response.status, 404);
    assert!(response.body.contains("did you mean \\\"/openapi.json\\\"?"), "{}", response.body);
}
