//! The document as it is checked in, and answers held against it.

use std::sync::LazyLock;

use serde_json::Value;

use super::schema::{check, resolve};
use crate::client::Answer;

pub(super) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
});

/// Headers that HTTP has of itself, or that every answer has.
const USUAL: [&str; 5] = ["content-type", "content-length", "cache-control", "connection", "date"];

/// The operation of a method at a path, if there is one.
pub(super) fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let path = path.split('?').next().unwrap();
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let is_meant = |text: &&String| {
        text.split_once('{').map_or(*text == path, |(before, _)| path.starts_with(before))
    };
    let operations = &paths[paths.keys().find(is_meant)?];
    // A path's other methods are answered as each of its own says under 405.
    operations
        .get(method.to_lowercase())
        .or_else(|| operations.as_object().unwrap().values().next())
}

/// Holds an answer, and what was asked if it was understood, to what the document says of them.
pub(crate) fn hold(method: &str, path: &str, body: &str, answer: &Answer) {
    let row = format!("{method} {path} {body}\n{} {}", answer.status, answer.body);
    let Some(operation) = operation(method, path) else {
        assert_eq!(answer.status, 404, "{row}");
        return;
    };
    let response = response(operation, answer.status).unwrap_or_else(|| panic!("{row}"));
    let content =
        response.get("content").and_then(|response| response.as_object().unwrap().iter().next());
    let kind = content.map(|content| &**content.0);
    assert_eq!(answer.header("content-type"), kind, "{row}");
    assert_eq!(answer.body.is_empty(), kind.is_none(), "{row}");
    if let Some((_, content)) = content.filter(|content| content.0.contains("json")) {
        let json = serde_json::from_str(&answer.body).unwrap();
        check(&DOCUMENT, &content["schema"], &json)
            .unwrap_or_else(|error| panic!("{row}\n{error}"));
    }
    for name in answer.headers() {
        let told = response["headers"].as_object();
        let told = told.is_some_and(|x| x.keys().any(|told| told.eq_ignore_ascii_case(name)));
        assert!(told || USUAL.iter().any(|it| it.eq_ignore_ascii_case(name)), "{name}: {row}");
    }
    let understood = matches!(answer.status, 200 | 409 | 422 | 429 | 503);
    if understood && let Some(asked) = operation.get("requestBody") {
        let schema = &asked["content"]["application/json"]["schema"];
        let json = without_null(serde_json::from_str(body).unwrap());
        check(&DOCUMENT, schema, &json).unwrap_or_else(|error| panic!("{row}\n{error}"));
    }
}

/// What an operation says of a status.
pub(super) fn response(operation: &'static Value, status: u16) -> Option<&'static Value> {
    let response = operation["responses"].get(status.to_string())?;
    Some(response.get("$ref").map_or(response, |response| resolve(&DOCUMENT, response)))
}

/// A field that is null is as if it was absent.
fn without_null(json: Value) -> Value {
    match json {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, x)| !x.is_null())
            .map(|(name, value)| (name, without_null(value)))
            .collect(),
        Value::Array(all) => all.into_iter().map(without_null).collect(),
        other => other,
    }
}
