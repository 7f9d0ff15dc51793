//! Answers by their status, and their headers.

use hyper::StatusCode;
use serde_json::{Map, Value, json};

use super::super::problem::ProblemKind;

/// Headers that tell limits, by the styles that the configuration chooses.
const OF_LIMITS: [&str; 9] = [
    "RateLimit-Policy",
    "RateLimit",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
];

/// The schemas that answers to verbs are of, and whether those are decisions.
const ANSWERS: [(&str, bool); 4] =
    [("Decision", true), ("DecisionOrDecisions", true), ("Change", false), ("Inspection", false)];

/// The statuses that such answers have; but for the first they are a decision's.
const STATUSES: [(&str, &str); 4] = [
    ("200", "What was decided or done."),
    ("429", "Denied; Retry-After says until when, if there is such a time."),
    ("422", "The cost is above a limit's capacity: waiting does not help."),
    ("503", "The store gave no answer, and the policy denies without one."),
];

/// The answer of a status to a verb, of the schema of that name.
pub(super) fn answer(status: &str, schema: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{schema}.{status}") })
}

/// That a gateway may let a request pass.
pub(super) fn pass() -> Value {
    json!({ "$ref": "#/components/responses/Pass" })
}

/// That it must not.
pub(super) fn denial() -> Value {
    json!({ "$ref": "#/components/responses/Denial.429" })
}

/// That it must not, in a status that refuses the gateway itself, too.
pub(super) fn denial_or_problem(status: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/DenialOrProblem.{status}") })
}

/// The responses to gateways, by name.
fn of_gateways() -> [(String, Value); 4] {
    let problem = |description: &str, schema: Value, headers: Value| {
        json!({
            "description": description,
            "content": { "application/problem+json": { "schema": schema } },
            "headers": headers,
        })
    };
    let schema = |text: &str| json!({ "$ref": format!("#/components/schemas/{text}") });
    let either = || json!({ "oneOf": [schema("Denial"), schema("Problem")] });
    let asked = "The request must not pass, as deny asks for it; or, of the gateway's own token: ";
    let (mut unknown, mut passed) = (of_limits(), of_limits());
    if let Some(headers) = passed.as_object_mut() {
        headers.remove("Retry-After");
    }
    unknown["WWW-Authenticate"] = json!({ "$ref": "#/components/headers/WWW-Authenticate" });
    [
        ("Pass".to_owned(), json!({ "description": "The request may pass.", "headers": passed })),
        (
            "Denial.429".to_owned(),
            problem("The request must not pass.", schema("Denial"), of_limits()),
        ),
        (
            "DenialOrProblem.401".to_owned(),
            problem(&format!("{asked}one is needed."), either(), unknown),
        ),
        (
            "DenialOrProblem.403".to_owned(),
            problem(&format!("{asked}it is not for that."), either(), of_limits()),
        ),
    ]
}

/// The headers that tell limits.
fn of_limits() -> Value {
    let reference = |text: &str| json!({ "$ref": format!("#/components/headers/{text}") });
    Value::Object(OF_LIMITS.iter().map(|limit| ((*limit).to_owned(), reference(limit))).collect())
}

/// All responses, by name.
pub(super) fn all() -> Value {
    let mut all = of_problems();
    all.extend(of_gateways());
    for (schema, is_decision) in ANSWERS {
        for (status, description) in
            STATUSES.iter().filter(|status| is_decision || status.0 == "200")
        {
            let mut answer = json!({
                "description": description,
                "content": { "application/json": {
                    "schema": { "$ref": format!("#/components/schemas/{schema}") },
                } },
            });
            if is_decision {
                answer["headers"] = of_limits();
            }
            all.insert(format!("{schema}.{status}"), answer);
        }
    }
    all.into()
}

/// The problem of a status.
pub(super) fn problem(status: &str) -> Value {
    json!({ "$ref": format!("#/components/responses/{status}") })
}

/// A response for each status that problems have.
fn of_problems() -> Map<String, Value> {
    let mut all = Map::new();
    for kind in ProblemKind::ALL {
        let status = kind.status();
        let titles = ProblemKind::ALL.iter().filter(|x| x.status() == status).map(|x| x.title());
        let titles: Vec<_> = titles.collect();
        let mut response = json!({
            "description": format!("{}.", titles.join(", or: ")),
            "content": { "application/problem+json": {
                "schema": { "$ref": "#/components/schemas/Problem" },
            } },
        });
        if let Some(header) = header(status) {
            response["headers"] =
                json!({ header: { "$ref": format!("#/components/headers/{header}") } });
        }
        all.insert(status.as_str().to_owned(), response);
    }
    all
}

/// What a problem of that status tells in a header of its own.
fn header(status: StatusCode) -> Option<&'static str> {
    match status {
        StatusCode::UNAUTHORIZED => Some("WWW-Authenticate"),
        StatusCode::METHOD_NOT_ALLOWED => Some("Allow"),
        _ => None,
    }
}

/// What each header is.
pub(super) fn headers() -> Value {
    let header = |kind: &str, description: &str| json!({ "description": description, "schema": { "type": kind } });
    let number = |description| header("integer", description);
    json!({
        "RateLimit-Policy": header("string", "The limits: q is the capacity, w the seconds in which \
            it comes back. Style draft11; in draft6 the capacity and w of the one that binds."),
        "RateLimit": header("string", "What is left of each: r is what could be spent at once, t the \
            seconds until there is more. Style draft11."),
        "RateLimit-Limit": number("The capacity of the limit that binds. Style draft6."),
        "RateLimit-Remaining": number("What could be spent at once. Style draft6."),
        "RateLimit-Reset": number("The seconds until there is more. Style draft6."),
        "X-RateLimit-Limit": number("The capacity of the limit that binds. Styles legacy-…."),
        "X-RateLimit-Remaining": number("What could be spent at once. Styles legacy-…."),
        "X-RateLimit-Reset": number("When there is more: in seconds from now in legacy-delta, since \
            the Unix epoch in legacy-epoch."),
        "Retry-After": number("The seconds after which the same would be admitted, rounded up."),
        "WWW-Authenticate": header("string", "Bearer."),
        "Allow": header("string", "The methods that the path has."),
    })
}
