//! The statuses of responses in the OpenAPI document.

use std::collections::HashMap;
use std::sync::LazyLock;

use hyper::Method;
use serde_json::Value;

/// The path of forward auth, before the gateway's name.
const FORWARD_AUTH: &str = "/v1/forward-auth/";

/// The statuses by method and path.
static DOCUMENT: LazyLock<HashMap<(String, String), Vec<u16>>> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(include_str!("../../docs/openapi.json"))
        .expect("the document is JSON");
    let mut statuses = HashMap::new();
    for (path, item) in document["paths"].as_object().expect("the document has paths") {
        for (method, operation) in item.as_object().expect("a path has methods") {
            let responses = operation["responses"].as_object().expect("there are responses");
            let numbers = responses.keys().map(|status| status.parse().expect("it is a number"));
            let path = path.trim_end_matches("/{path}");
            statuses.insert((method.to_uppercase(), path.to_owned()), numbers.collect());
        }
    }
    statuses
});

/// The statuses that the OpenAPI document lists for a request.
pub fn statuses(method: &Method, path: &str) -> &'static [u16] {
    let gateway = path.strip_prefix(FORWARD_AUTH).map(|rest| {
        let name = rest.split('/').next().unwrap_or_default();
        format!("{FORWARD_AUTH}{name}")
    });
    // A gateway may send any method, and a client may send HEAD in place of GET.
    let is_get = gateway.is_some() || *method == Method::HEAD;
    let method = if is_get { "GET" } else { method.as_str() };
    let path = gateway.unwrap_or_else(|| path.to_owned());
    let is_known = DOCUMENT.keys().any(|(_, known)| *known == path);
    match DOCUMENT.get(&(method.to_owned(), path)) {
        Some(statuses) => statuses,
        None if is_known => &[405],
        None => &[404],
    }
}
