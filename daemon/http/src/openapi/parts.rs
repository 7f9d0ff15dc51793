//! Parts of the document that recur: references, responses and schemas.

use serde_json::{Value, json};

pub(super) fn schema_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn response_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{name}") })
}

pub(super) fn header_ref(name: &str) -> Value {
    json!({ "$ref": format!("#/components/headers/{name}") })
}

/// A response with a body in this format.
pub(super) fn response(description: &str, format: &str, schema: Value) -> Value {
    json!({ "description": description, "content": { format: { "schema": schema } } })
}

pub(super) fn json_response(description: &str, schema: Value) -> Value {
    response(description, "application/json", schema)
}

pub(super) fn text_response(description: &str) -> Value {
    response(description, "text/plain; charset=utf-8", json!({ "type": "string" }))
}

pub(super) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

pub(super) fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

pub(super) fn described(mut schema: Value, description: &str) -> Value {
    schema["description"] = json!(description);
    schema
}
