//! `GET /openapi.json`: the OpenAPI 3.1 document, generated from the tables that requests are
//! parsed with. A test keeps `docs/openapi.json` up to date and compares it with real responses.

mod envoy;
mod fields;
mod gateways;
mod operations;
mod parts;
mod responses;
mod schemas;
mod usage;

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::authentication::TokenHeader;

/// The document, which is constant.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", value()));
    &DOCUMENT
}

fn value() -> Value {
    let paths: Map<_, _> =
        operations::paths().chain(gateways::paths()).chain(envoy::paths()).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Decides whether a key may spend a cost now, and if not, when. In \
                requests a null field is the same as an absent one, and an unknown field is an \
                error. Times are seconds, exact to the microsecond.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "http://127.0.0.1:8080" }],
        "paths": paths,
        "components": {
            "schemas": schemas::all(),
            "responses": responses::all(),
            "headers": responses::headers(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A configured token, if there are any. The scopes of an \
                        operation are alternatives.",
                },
                "gateway": {
                    "type": "apiKey",
                    "in": "header",
                    "name": TokenHeader::TollgateToken.name(),
                    "description": "The token of a gateway, which forwards its client's \
                        Authorization.",
                },
            },
        },
    })
}
