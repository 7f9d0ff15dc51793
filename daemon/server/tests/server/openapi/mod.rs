//! The OpenAPI document, compared with the requests and responses of the daemon.

mod coverage;
mod gateways;
mod schema;

use std::sync::LazyLock;

use serde_json::Value;

use self::schema::{check, resolve};
use crate::http::access;
use crate::support::client::Response;
use crate::support::daemon::Daemon;

/// The checked-in document.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
});

/// Headers of HTTP, or of every response, which the document does not list.
const COMMON_HEADERS: [&str; 5] =
    ["content-type", "content-length", "cache-control", "connection", "date"];

/// The operation of a method at a path, if there is one.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let matches = |template: &&String| {
        template.split_once('{').map_or(*template == path, |(start, _)| path.starts_with(start))
    };
    let operations = &paths[paths.keys().find(matches)?];
    // Every operation of a path documents the response 405 to other methods.
    operations
        .get(method.to_lowercase())
        .or_else(|| operations.as_object().unwrap().values().next())
}

/// Asserts that the document describes the response, and the request if it was valid.
pub(crate) fn assert_documented(method: &str, path: &str, body: &str, response: &Response) {
    let row = format!("{method} {path} {body}\n{} {}", response.status, response.body);
    let Some(operation) = operation(method, path) else {
        assert_eq!(response.status, 404, "{row}");
        return;
    };
    let documented =
        documented_response(operation, response.status).unwrap_or_else(|| panic!("{row}"));
    let content =
        documented.get("content").and_then(|content| content.as_object().unwrap().iter().next());
    let kind = content.map(|(kind, _)| &**kind);
    assert_eq!(response.header("content-type"), kind, "{row}");
    assert_eq!(response.body.is_empty(), kind.is_none(), "{row}");
    if let Some((_, content)) = content.filter(|(kind, _)| kind.contains("json")) {
        let json = serde_json::from_str(&response.body).unwrap();
        check(&DOCUMENT, &content["schema"], &json)
            .unwrap_or_else(|error| panic!("{row}\n{error}"));
    }
    let headers = documented["headers"].as_object();
    let headers = headers.into_iter().flat_map(|headers| headers.keys().map(|name| &**name));
    let known: Vec<_> = headers.chain(COMMON_HEADERS).collect();
    for (name, _) in response.headers() {
        assert!(known.iter().any(|known| known.eq_ignore_ascii_case(name)), "{name}: {row}");
    }
    let is_valid = matches!(response.status, 200 | 409 | 422 | 429 | 503);
    if is_valid && let Some(request) = operation.get("requestBody") {
        let schema = &request["content"]["application/json"]["schema"];
        let json = without_null(serde_json::from_str(body).unwrap());
        check(&DOCUMENT, schema, &json).unwrap_or_else(|error| panic!("{row}\n{error}"));
    }
}

/// The documented response of an operation with this status.
fn documented_response(operation: &'static Value, status: u16) -> Option<&'static Value> {
    let response = operation["responses"].get(status.to_string())?;
    Some(response.get("$ref").map_or(response, |response| resolve(&DOCUMENT, response)))
}

/// Removes fields that are null, which are equivalent to absent ones.
fn without_null(json: Value) -> Value {
    match json {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_null(value)))
            .collect(),
        Value::Array(all) => all.into_iter().map(without_null).collect(),
        other => other,
    }
}

#[tokio::test]
async fn the_checked_in_document_is_the_one_that_is_served() {
    let daemon = Daemon::start().await;
    let served = daemon.connect().await.get("/openapi.json").await.unwrap();
    assert_eq!((served.status, served.header("content-type")), (200, Some("application/json")));
    let file = "docs/openapi.json";
    tollgate_testkit::assert_up_to_date(file, &served.body, "tollgate-daemon", "server");
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
    response.assert(404, r#"did you mean \"/openapi.json\"?"#, "/openapi.jsn");
}
