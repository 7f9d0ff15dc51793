//! Forward auth: the path of each gateway, and its headers.

use serde_json::{Value, json};
use tollgate_config::Scope;

use super::operations;
use super::parts::response_ref;
use crate::forward::{GATEWAYS, GatewayProtocol};

/// The path of each gateway.
pub(super) fn paths() -> impl Iterator<Item = (String, Value)> {
    GATEWAYS.iter().map(|gateway| {
        let base = gateway.path();
        // The query is Tollgate's where a header contains the client's path.
        let path = if gateway.has_query() { base } else { format!("{base}/{{path}}") };
        (path, json!({ "get": operation(gateway) }))
    })
}

fn operation(gateway: &GatewayProtocol) -> Value {
    let own = if gateway.has_query() { deny() } else { path() };
    let headers = gateway.headers().map(|header| {
        json!({
            "name": header.name,
            "in": "header",
            "description": header.description,
            "required": header.is_required,
            "schema": { "type": "string" },
        })
    });
    let parameters: Vec<_> = std::iter::once(own).chain(headers).collect();
    // The query may select the status of denials.
    let prefix = if gateway.has_query() { "DenialOrProblem." } else { "" };
    json!({
        "operationId": format!("forwardAuth{}", capitalized(gateway.name())),
        "summary": format!("Decides whether {} admits a request of its client.", gateway.name()),
        "description": "Accepts any method and reads no body. Rules may read further headers.",
        "security": operations::security("gateway", &[Scope::Check]),
        "parameters": parameters,
        "responses": {
            "200": response_ref("Pass"),
            "401": response_ref(&format!("{prefix}401")),
            "403": response_ref(&format!("{prefix}403")),
            "429": response_ref("Denial.429"),
            "500": response_ref("500"),
        },
    })
}

fn deny() -> Value {
    json!({
        "name": "deny",
        "in": "query",
        "description": "The status of denials, for gateways that support fewer.",
        "schema": { "type": "string", "enum": ["401", "403", "429"], "default": "429" },
    })
}

fn path() -> Value {
    json!({
        "name": "path",
        "in": "path",
        "description": "The path and query of the client's request, with its slashes.",
        "required": true,
        "schema": { "type": "string" },
    })
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
