//! The paths of operations and probes.

use serde_json::{Map, Value, json};
use tollgate_config::Scope;
use tollgate_engine::{OPERATIONS, OperationSpec, Parameter, QUERY_SCOPES, ResponseKind};
use tollgate_insight::MAX_PAGE;

use super::fields;
use super::parts::{json_response, response_ref, schema_ref, text_response};
use crate::keys;
use crate::object::STATUS;
use crate::operations::{QUERY_PARAMETERS, has_query_form};

/// The paths of operations, of probes and of this document.
pub(super) fn paths() -> impl Iterator<Item = (String, Value)> {
    let operations = OPERATIONS.iter().map(|spec| (format!("/v1/{}", spec.name), path_item(spec)));
    operations.chain(others().map(|(path, item)| (path.to_owned(), item)))
}

fn path_item(spec: &OperationSpec) -> Value {
    let mut post = operation(spec, spec.name, spec.parameters, true);
    let schema = fields::object(spec.parameters, spec.required);
    post["requestBody"] =
        json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    post["parameters"] = json!([parameter(STATUS)]);
    let mut path = json!({ "post": post });
    if has_query_form(spec) {
        let name = format!("{}ByQuery", spec.name);
        let mut get = operation(spec, &name, QUERY_PARAMETERS, false);
        let names = QUERY_PARAMETERS.iter().map(|parameter| parameter.name()).chain([STATUS]);
        get["parameters"] = names.map(parameter).collect();
        path["get"] = get;
    }
    path
}

fn operation(spec: &OperationSpec, id: &str, accepted: &[Parameter], has_body: bool) -> Value {
    let is_verdict = spec.response == ResponseKind::Verdict;
    let schema = match (spec.response, accepted.contains(&Parameter::Checks)) {
        (ResponseKind::Verdict | ResponseKind::Preview, true) => "DecisionOrDecisions",
        (ResponseKind::Verdict | ResponseKind::Preview, false) => "Decision",
        (ResponseKind::Change, true) => "ChangeOrChanges",
        (ResponseKind::Change, false) => "Change",
        (ResponseKind::Inspection, _) => "Inspection",
    };
    let mut responses = Map::new();
    let decided = [
        ("200", true),
        ("429", is_verdict),
        ("503", is_verdict),
        ("422", spec.can_exceed_capacity()),
    ];
    for (status, _) in decided.into_iter().filter(|(_, occurs)| *occurs) {
        responses.insert(status.to_owned(), response_ref(&format!("{schema}.{status}")));
    }
    let problems = [
        ("400", true),
        ("401", true),
        ("403", true),
        ("404", true),
        ("405", true),
        ("408", has_body),
        ("413", has_body),
        ("409", accepted.contains(&Parameter::RequestId)),
        // A policy decides without the store; nothing else can be executed then.
        ("503", !spec.decides()),
    ];
    for (status, _) in problems.into_iter().filter(|(_, occurs)| *occurs) {
        responses.insert(status.to_owned(), response_ref(status));
    }
    json!({
        "operationId": id,
        "summary": spec.summary,
        "security": security("bearer", spec.scopes),
        "responses": responses,
    })
}

fn parameter(name: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": schema_ref(name) })
}

/// No token if none is configured; otherwise one with any of these scopes.
pub(super) fn security(scheme: &str, scopes: &[Scope]) -> Value {
    let scopes = scopes.iter().chain([&Scope::Admin]);
    let needs = scopes.map(|scope| json!({ scheme: [scope.as_str()] }));
    std::iter::once(json!({})).chain(needs).collect()
}

/// The query of the keys of a policy.
fn keys_query() -> Value {
    let parameters: Vec<_> = keys::PARAMETERS
        .iter()
        .map(|known| match known {
            Parameter::Limit => json!({ "name": "limit", "in": "query", "schema": page_limit() }),
            Parameter::Policy => {
                let mut policy = parameter(known.name());
                policy["required"] = json!(true);
                policy
            }
            known => parameter(known.name()),
        })
        .collect();
    let mut responses = Map::new();
    responses.insert("200".to_owned(), response_ref("Keys.200"));
    for status in ["400", "401", "403", "404", "405", "503"] {
        responses.insert(status.to_owned(), response_ref(status));
    }
    json!({
        "operationId": "keys",
        "summary": "Returns the keys of a policy with track, in an order, page by page.",
        "security": security("bearer", QUERY_SCOPES),
        "parameters": parameters,
        "responses": responses,
    })
}

fn page_limit() -> Value {
    json!({
        "type": "integer",
        "minimum": 1,
        "maximum": MAX_PAGE,
        "default": keys::DEFAULT_LIMIT,
        "description": "The most keys of a page.",
    })
}

/// The paths of probes and of this document.
fn others() -> [(&'static str, Value); 4] {
    let probe = |id: &str, summary: &str, parameters: Value, responses: Value| {
        json!({ "get": {
            "operationId": id,
            "summary": summary,
            "security": [],
            "parameters": parameters,
            "responses": responses,
        } })
    };
    let verbose = json!([{
        "name": "verbose",
        "in": "query",
        "description": "Adds one line per component: the store, the last reload, the control \
            plane. Its value is ignored.",
        "allowEmptyValue": true,
        "schema": { "type": "string" },
    }]);
    let live = json!({ "200": text_response("The process is alive."), "405": response_ref("405") });
    let ready = json!({
        "200": text_response("It accepts requests."),
        "503": text_response("It is draining, or waits for its limits."),
        "405": response_ref("405"),
    });
    let document = json!({ "get": {
        "operationId": "openapi",
        "summary": "Returns this document; with tokens, to clients with any valid one.",
        "security": [{}, { "bearer": [] }],
        "responses": {
            "200": json_response("This document.", json!({ "type": "object" })),
            "401": response_ref("401"),
            "405": response_ref("405"),
        },
    } });
    [
        ("/livez", probe("livez", "Returns whether the process is alive.", json!([]), live)),
        (
            "/readyz",
            probe("readyz", "Returns whether the daemon accepts requests.", verbose, ready),
        ),
        ("/openapi.json", document),
        (keys::PATH, json!({ "get": keys_query() })),
    ]
}
