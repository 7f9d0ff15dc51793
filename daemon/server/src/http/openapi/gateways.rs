//! Forward-auth: a path for each gateway, with the headers in which it tells of a request.

use serde_json::{Value, json};

use super::super::forward::{DIALECTS, Dialect};
use super::{operations, responses};
use crate::config::Scope;

/// The path of each gateway.
pub(super) fn paths() -> impl Iterator<Item = (String, Value)> {
    DIALECTS.iter().map(|dialect| {
        let address = dialect.address();
        // The query is ours where the client's path is told by a header.
        let path = if dialect.has_query() { address } else { format!("{address}/{{path}}") };
        (path, json!({ "get": operation(dialect) }))
    })
}

fn operation(dialect: &Dialect) -> Value {
    let own = if dialect.has_query() { deny() } else { path() };
    let headers = dialect.told_by().map(|told_by| {
        json!({
            "name": told_by.name,
            "in": "header",
            "description": told_by.what,
            "required": told_by.always,
            "schema": { "type": "string" },
        })
    });
    let parameters: Vec<_> = std::iter::once(own).chain(headers).collect();
    let refused = |status| match dialect.has_query() {
        true => responses::denial_or_problem(status),
        false => responses::problem(status),
    };
    json!({
        "operationId": format!("forwardAuth{}", capitalized(dialect.name())),
        "summary": format!("Whether a request may pass that {} asks about.", dialect.name()),
        "description": "Any method is answered in this way, and no body is looked at. Headers that \
            rules name are read too.",
        "security": operations::security("gateway", &[Scope::Check]),
        "parameters": parameters,
        "responses": {
            "200": responses::pass(),
            "401": refused("401"),
            "403": refused("403"),
            "429": responses::denial(),
            "500": responses::problem("500"),
        },
    })
}

fn deny() -> Value {
    json!({
        "name": "deny",
        "in": "query",
        "description": "The status of denials, for a gateway that knows fewer.",
        "schema": { "type": "string", "enum": ["401", "403", "429"], "default": "429" },
    })
}

fn path() -> Value {
    json!({
        "name": "path",
        "in": "path",
        "description": "The path of the client's request, slashes and all, and its query.",
        "required": true,
        "schema": { "type": "string" },
    })
}

fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
