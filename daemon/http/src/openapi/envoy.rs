//! The paths of envoyproxy/ratelimit: its rate limit service as JSON, and its health.

use serde_json::{Value, json};
use tollgate_config::Scope;

use super::operations;
use super::parts::{described, json_response, list, response_ref, schema_ref, text, text_response};

pub(super) fn paths() -> [(String, Value); 2] {
    [
        ("/healthcheck".to_owned(), json!({ "get": healthcheck() })),
        ("/json".to_owned(), json!({ "post": rate_limit() })),
    ]
}

fn healthcheck() -> Value {
    json!({
        "operationId": "healthcheck",
        "summary": "Returns whether the daemon accepts requests, as envoyproxy/ratelimit does.",
        "security": [],
        "responses": {
            "200": text_response("It accepts requests."),
            "500": text_response("It is draining."),
            "405": response_ref("405"),
        },
    })
}

fn rate_limit() -> Value {
    let answer = |description: &str| json_response(description, schema_ref("RateLimitResponse"));
    let mut responses = json!({
        "200": answer("The request is admitted."),
        "429": answer("The request is denied."),
        "400": text_response("The request is invalid, or cannot be decided."),
    });
    for status in ["401", "403", "405", "408", "413", "503"] {
        responses[status] = response_ref(status);
    }
    let content = json!({ "application/json": { "schema": schema_ref("RateLimitRequest") } });
    json!({
        "operationId": "rateLimit",
        "summary": "Envoy's rate limit service as JSON, as in envoyproxy/ratelimit.",
        "description": "Field names may also be in snake_case, and numbers may be strings.",
        "security": operations::security("bearer", &[Scope::Check]),
        "requestBody": { "required": true, "content": content },
        "responses": responses,
    })
}

/// The schemas of the request and the response.
pub(super) fn schemas() -> [(String, Value); 2] {
    [("RateLimitRequest".to_owned(), request()), ("RateLimitResponse".to_owned(), response())]
}

fn request() -> Value {
    let entry = object(json!({ "key": { "type": "string" }, "value": { "type": "string" } }));
    let units = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"];
    let limit = object(json!({
        "requestsPerUnit": number(),
        "unit": { "type": "string", "enum": units },
    }));
    let descriptor = object(json!({
        "entries": list(entry),
        "limit": limit,
        "hitsAddend": described(number(), "The cost, in place of the request's; 0 peeks."),
        "isNegativeHits": { "type": "boolean", "description": "Whether the cost is given back." },
    }));
    let keys = "Keys with values that select a rule, or form the key of a policy.";
    object(json!({
        "domain": text("A domain of the files of envoy.config, or the name of a policy."),
        "descriptors": list(described(descriptor, keys)),
        "hitsAddend": described(number(), "The cost of each descriptor; 0 means 1."),
    }))
}

fn response() -> Value {
    let units = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"];
    let code = json!({ "type": "string", "enum": ["OK", "OVER_LIMIT"] });
    let count = json!({ "type": "integer", "minimum": 0 });
    let limit = object(json!({
        "name": { "type": "string" },
        "requestsPerUnit": count,
        "unit": { "type": "string", "enum": units },
    }));
    let status = object(json!({
        "code": code,
        "currentLimit":
            described(limit, "The binding limit; without a unit if its window has none."),
        "limitRemaining": count,
        "durationUntilReset": text("Whole seconds, such as 60s."),
    }));
    let header = object(json!({ "key": { "type": "string" }, "value": { "type": "string" } }));
    let response = object(json!({
        "overallCode": code,
        "statuses": list(status),
        "responseHeadersToAdd": list(header),
        "dynamicMetadata": { "type": "object" },
    }));
    described(response, "Fields that are 0 or empty are omitted.")
}

/// A number, which may also be a string.
fn number() -> Value {
    json!({ "type": ["integer", "string"], "minimum": 0 })
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
