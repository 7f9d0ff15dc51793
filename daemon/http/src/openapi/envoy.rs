//! What envoyproxy/ratelimit has over HTTP: its rate limit service as JSON, and its health.

use serde_json::{Value, json};

use super::{operations, responses};
use tollgate_config::Scope;

pub(super) fn paths() -> [(String, Value); 2] {
    [
        ("/healthcheck".to_owned(), json!({ "get": healthcheck() })),
        ("/json".to_owned(), json!({ "post": rate_limit() })),
    ]
}

fn healthcheck() -> Value {
    json!({
        "operationId": "healthcheck",
        "summary": "Whether it wants requests, as envoyproxy/ratelimit says it.",
        "security": [],
        "responses": {
            "200": text("It wants requests."),
            "500": text("It was told to stop."),
            "405": responses::problem("405"),
        },
    })
}

fn rate_limit() -> Value {
    let content = |schema: &str| {
        let schema = format!("#/components/schemas/{schema}");
        json!({ "application/json": { "schema": { "$ref": schema } } })
    };
    let answer = |description: &str| json!({ "description": description, "content": content("RateLimitResponse") });
    let mut told = json!({
        "200": answer("The request may pass."),
        "429": answer("The request must not pass."),
        "400": text("The request cannot be read, or cannot be decided."),
    });
    for status in ["401", "403", "405", "408", "413", "503"] {
        told[status] = responses::problem(status);
    }
    json!({
        "operationId": "rateLimit",
        "summary": "Envoy's rate limit service as JSON, as envoyproxy/ratelimit has it.",
        "description": "Names of fields may also be written in small letters with underscores, and \
            numbers as texts.",
        "security": operations::security("bearer", &[Scope::Check]),
        "requestBody": { "required": true, "content": content("RateLimitRequest") },
        "responses": told,
    })
}

fn text(description: &str) -> Value {
    json!({
        "description": description,
        "content": { "text/plain; charset=utf-8": { "schema": { "type": "string" } } },
    })
}

/// What the request and its answer are made of.
pub(super) fn schemas() -> [(String, Value); 2] {
    [("RateLimitRequest".to_owned(), request()), ("RateLimitResponse".to_owned(), response())]
}

fn request() -> Value {
    let entry = object(json!({ "key": { "type": "string" }, "value": { "type": "string" } }));
    let units = ["UNKNOWN", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "YEAR"];
    let limit = object(json!({
        "requestsPerUnit": { "type": ["integer", "string"], "minimum": 0 },
        "unit": { "type": "string", "enum": units },
    }));
    let mut descriptor = object(json!({
        "entries": list(entry),
        "limit": limit,
        "hitsAddend": {
            "type": ["integer", "string"],
            "minimum": 0,
            "description": "How much it spends, in place of the request's number; 0 only asks.",
        },
        "isNegativeHits": { "type": "boolean", "description": "Whether that is given back." },
    }));
    descriptor["description"] =
        json!("Keys with values that lead to a rule, or name who is limited under a policy.");
    object(json!({
        "domain": {
            "type": "string",
            "description": "A domain of envoyproxy/ratelimit's files, or a policy.",
        },
        "descriptors": list(descriptor),
        "hitsAddend": {
            "type": ["integer", "string"],
            "minimum": 0,
            "description": "How much each descriptor spends; 0 stands for 1.",
        },
    }))
}

fn response() -> Value {
    let units = ["SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR"];
    let code = json!({ "type": "string", "enum": ["OK", "OVER_LIMIT"] });
    let count = json!({ "type": "integer", "minimum": 0 });
    let mut limit = object(json!({
        "name": { "type": "string" },
        "requestsPerUnit": count,
        "unit": { "type": "string", "enum": units },
    }));
    limit["description"] = json!("The limit that binds; no unit where its window is not of one.");
    let status = object(json!({
        "code": code,
        "currentLimit": limit,
        "limitRemaining": count,
        "durationUntilReset": { "type": "string", "description": "Whole seconds, such as 60s." },
    }));
    let header = object(json!({ "key": { "type": "string" }, "value": { "type": "string" } }));
    let mut response = object(json!({
        "overallCode": code,
        "statuses": list(status),
        "responseHeadersToAdd": list(header),
        "dynamicMetadata": { "type": "object" },
    }));
    response["description"] = json!("What is 0 or empty is left out.");
    response
}

fn object(properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn list(of: Value) -> Value {
    json!({ "type": "array", "items": of })
}
