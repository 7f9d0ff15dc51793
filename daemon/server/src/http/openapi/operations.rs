//! The paths, and what may be asked at each.

use serde_json::{Map, Value, json};

use super::super::field::Field;
use super::super::verbs::{Answers, Spoken};
use super::{fields, responses};
use crate::config::Scope;

/// The path of a verb.
pub(super) fn of_verb(spoken: &Spoken) -> Value {
    let mut post = operation(spoken, spoken.name, spoken.fields, true);
    post["requestBody"] = json!({
        "required": true,
        "content": { "application/json": { "schema": fields::object(spoken.fields, spoken.needs) } },
    });
    post["parameters"] = json!([parameter(Field::Status)]);
    let mut path = json!({ "post": post });
    if spoken.by_query {
        let name = format!("{}ByQuery", spoken.name);
        let mut get = operation(spoken, &name, spoken.fields_of_query, false);
        get["parameters"] = spoken.fields_of_query.iter().map(|field| parameter(*field)).collect();
        path["get"] = get;
    }
    path
}

fn operation(spoken: &Spoken, id: &str, known: &[Field], has_body: bool) -> Value {
    let mut told = Map::new();
    let answer = match (spoken.answers, known.contains(&Field::Checks)) {
        (Answers::Verdict | Answers::Decision, true) => "DecisionOrDecisions",
        (Answers::Verdict | Answers::Decision, false) => "Decision",
        (Answers::Change, _) => "Change",
        (Answers::Inspection, _) => "Inspection",
    };
    // What a decision says, the status says too.
    let of_verdicts = ["429", "503"].into_iter().filter(|_| spoken.answers == Answers::Verdict);
    let of_never = ["422"].into_iter().filter(|_| spoken.can_be_never());
    for status in ["200"].into_iter().chain(of_verdicts).chain(of_never) {
        told.insert(status.to_owned(), responses::answer(status, answer));
    }
    let problems = ["400", "401", "403", "404", "405"].into_iter();
    let of_bodies = ["408", "413"].into_iter().filter(|_| has_body);
    let of_ids = ["409"].into_iter().filter(|_| known.contains(&Field::RequestId));
    let of_stores = ["503"].into_iter().filter(|_| spoken.needs_store());
    for status in problems.chain(of_bodies).chain(of_ids).chain(of_stores) {
        told.insert(status.to_owned(), responses::problem(status));
    }
    json!({
        "operationId": id,
        "summary": spoken.about,
        "security": security("bearer", spoken.scopes),
        "responses": told,
    })
}

fn parameter(field: Field) -> Value {
    json!({ "name": field.name(), "in": "query", "schema": fields::reference(field) })
}

/// Nothing, where no token is configured; else a token of one of these scopes.
pub(super) fn security(scheme: &str, scopes: &[Scope]) -> Value {
    let scopes = scopes.iter().chain([&Scope::Admin]);
    let needs = scopes.map(|scope| json!({ scheme: [scope.as_str()] }));
    std::iter::once(json!({})).chain(needs).collect()
}

/// The paths that are not verbs.
pub(super) fn others() -> [(String, Value); 3] {
    let text = |description: &str| {
        json!({
            "description": description,
            "content": { "text/plain; charset=utf-8": { "schema": { "type": "string" } } },
        })
    };
    let probe = |id: &str, summary: &str, parameters: Value, told: Value| {
        json!({ "get": {
            "operationId": id,
            "summary": summary,
            "security": [],
            "parameters": parameters,
            "responses": told,
        } })
    };
    let verbose = json!([{
        "name": "verbose",
        "in": "query",
        "description": "Adds a line for all that may be wrong: the store, the configuration that was \
            read again. Whatever its value is.",
        "allowEmptyValue": true,
        "schema": { "type": "string" },
    }]);
    let no_method = responses::problem("405");
    let live = json!({ "200": text("It lives."), "405": no_method });
    let ready = json!({
        "200": text("It wants requests."),
        "503": text("It was told to stop."),
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
        "summary": "This document; with tokens, for whoever has one.",
        "security": [{}, { "bearer": [] }],
        "responses": document,
    } });
    [
        ("/livez".to_owned(), probe("livez", "Whether the process lives.", json!([]), live)),
        ("/readyz".to_owned(), probe("readyz", "Whether it wants requests.", verbose, ready)),
        ("/openapi.json".to_owned(), document),
    ]
}
