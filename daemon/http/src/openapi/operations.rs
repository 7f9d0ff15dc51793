//! The paths of operations and probes.

use serde_json::{Map, Value, json};

use tollgate_engine::{OperationSpec, Parameter, ResponseKind};

use super::super::object::STATUS;
use super::super::operations::{QUERY_PARAMETERS, has_query_form};
use super::{fields, responses};
use tollgate_config::Scope;

/// The path item of an operation.
pub(super) fn path_item(spec: &OperationSpec) -> Value {
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
        (ResponseKind::Change, _) => "Change",
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
        responses.insert(status.to_owned(), responses::answer(status, schema));
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
        responses.insert(status.to_owned(), responses::problem(status));
    }
    json!({
        "operationId": id,
        "summary": spec.summary,
        "security": security("bearer", spec.scopes),
        "responses": responses,
    })
}

fn parameter(name: &str) -> Value {
    json!({ "name": name, "in": "query", "schema": fields::reference(name) })
}

/// No token where none is configured; otherwise one with any of these scopes.
pub(super) fn security(scheme: &str, scopes: &[Scope]) -> Value {
    let scopes = scopes.iter().chain([&Scope::Admin]);
    let needs = scopes.map(|scope| json!({ scheme: [scope.as_str()] }));
    std::iter::once(json!({})).chain(needs).collect()
}

/// The paths of probes, and of this document.
pub(super) fn others() -> [(String, Value); 3] {
    let text = |description: &str| {
        json!({
            "description": description,
            "content": { "text/plain; charset=utf-8": { "schema": { "type": "string" } } },
        })
    };
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
        "description": "Adds one line per component: the store, the last reload, the control plane. \
            Its value is ignored.",
        "allowEmptyValue": true,
        "schema": { "type": "string" },
    }]);
    let no_method = responses::problem("405");
    let live = json!({ "200": text("The process is alive."), "405": no_method });
    let ready = json!({
        "200": text("It accepts requests."),
        "503": text("It is draining, or waits for its limits."),
        "405": no_method,
    });
    let document = json!({
        "200": {
            "description": "This document.",
            "content": { "application/json": { "schema": { "type": "object" } } },
        },
        "401": responses::problem("401"),
        "405": no_method,
    });
    let document = json!({ "get": {
        "operationId": "openapi",
        "summary": "Returns this document; with tokens, to clients with any valid one.",
        "security": [{}, { "bearer": [] }],
        "responses": document,
    } });
    [
        (
            "/livez".to_owned(),
            probe("livez", "Returns whether the process is alive.", json!([]), live),
        ),
        (
            "/readyz".to_owned(),
            probe("readyz", "Returns whether the daemon accepts requests.", verbose, ready),
        ),
        ("/openapi.json".to_owned(), document),
    ]
}
