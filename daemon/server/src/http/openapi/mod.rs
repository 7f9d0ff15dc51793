//! `GET /openapi.json`: the interface as OpenAPI 3.1 describes it, made from the tables that the
//! requests are read with. `docs/openapi.json` is the same, and a test holds it against answers.

mod envoy;
mod fields;
mod gateways;
mod operations;
mod responses;
mod schemas;

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::caller::Bears;
use super::verbs::SPOKEN;

/// The document; it does not change while the daemon runs.
pub(super) fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| format!("{:#}\n", value()));
    &DOCUMENT
}

fn value() -> Value {
    let verbs = SPOKEN.iter().map(|x| (format!("/v1/{}", x.name), operations::of_verb(x)));
    let others = gateways::paths().chain(envoy::paths()).chain(operations::others());
    let paths: serde_json::Map<_, _> = verbs.chain(others).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "May this key spend this cost now, and if not, when? In requests a field \
                that is null is as if it was absent, and one that is not known is an error. Times are \
                seconds, exact to the microsecond.",
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
                    "description": "A token of the configuration, where it has any. The scopes of an \
                        operation are alternatives.",
                },
                "gateway": {
                    "type": "apiKey",
                    "in": "header",
                    "name": Bears::TollgateToken.header(),
                    "description": "The same for a gateway, which passes on its client's \
                        Authorization.",
                },
            },
        },
    })
}
