//! Responses by their status, and their headers.

use serde_json::{Map, Value, json};

use super::parts::{header_ref, json_response, response, schema_ref};
use crate::problem::ProblemKind;

/// The headers with limits, in all styles.
const LIMIT_HEADERS: [&str; 9] = [
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

/// The schemas of responses to operations, and whether they are decisions.
const SCHEMAS: [(&str, bool); 6] = [
    ("Decision", true),
    ("DecisionOrDecisions", true),
    ("Change", false),
    ("ChangeOrChanges", false),
    ("Inspection", false),
    ("Keys", false),
];

/// The statuses of these responses; only decisions have others than the first.
const STATUSES: [(&str, &str); 4] = [
    ("200", "The result."),
    ("429", "Denied, with Retry-After if waiting helps."),
    ("422", "The cost exceeds the capacity of a limit; waiting does not help."),
    ("503", "The store did not answer, and the policy denies without it."),
];

/// All responses, by name: an operation's is `schema.status`, a problem's `status`.
pub(super) fn all() -> Value {
    let mut all: Map<_, _> = problem_responses().chain(gateway_responses()).collect();
    for (schema, is_decision) in SCHEMAS {
        let statuses = if is_decision { &STATUSES[..] } else { &STATUSES[..1] };
        for (status, description) in statuses {
            let mut response = json_response(description, schema_ref(schema));
            if is_decision {
                response["headers"] = limit_headers();
            }
            all.insert(format!("{schema}.{status}"), response);
        }
    }
    all.into()
}

/// The responses to gateways.
fn gateway_responses() -> impl Iterator<Item = (String, Value)> {
    let problem = |description: &str, schema: Value, headers: Value| {
        let mut response = response(description, "application/problem+json", schema);
        response["headers"] = headers;
        response
    };
    let denial_or_problem = json!({ "oneOf": [schema_ref("Denial"), schema_ref("Problem")] });
    let (mut unauthorized, mut admitted) = (limit_headers(), limit_headers());
    if let Some(headers) = admitted.as_object_mut() {
        headers.remove("Retry-After");
    }
    unauthorized["WWW-Authenticate"] = header_ref("WWW-Authenticate");
    [
        ("Pass", json!({ "description": "The request is admitted.", "headers": admitted })),
        ("Denial.429", problem("The request is denied.", schema_ref("Denial"), limit_headers())),
        (
            "DenialOrProblem.401",
            problem(
                "The request is denied, with the status that deny selects; or the gateway sent no \
                 valid token.",
                denial_or_problem.clone(),
                unauthorized,
            ),
        ),
        (
            "DenialOrProblem.403",
            problem(
                "The request is denied, with the status that deny selects; or the gateway's token \
                 lacks a right.",
                denial_or_problem,
                limit_headers(),
            ),
        ),
    ]
    .into_iter()
    .map(|(name, response)| (name.to_owned(), response))
}

fn limit_headers() -> Value {
    LIMIT_HEADERS.iter().map(|header| ((*header).to_owned(), header_ref(header))).collect()
}

/// A response for each status of problems.
fn problem_responses() -> impl Iterator<Item = (String, Value)> {
    ProblemKind::ALL.iter().map(|kind| {
        let status = kind.status();
        let same_status = ProblemKind::ALL.iter().filter(|kind| kind.status() == status);
        let titles: Vec<_> = same_status.map(|kind| kind.title()).collect();
        let description = format!("{}.", titles.join(", or: "));
        let mut response =
            response(&description, "application/problem+json", schema_ref("Problem"));
        let header = match kind {
            ProblemKind::Unauthorized => Some("WWW-Authenticate"),
            ProblemKind::Method => Some("Allow"),
            _ => None,
        };
        if let Some(header) = header {
            response["headers"] = json!({ header: header_ref(header) });
        }
        (status.as_str().to_owned(), response)
    })
}

/// The schemas of headers.
pub(super) fn headers() -> Value {
    let header = |kind: &str, description: &str| {
        let schema = json!({ "type": kind });
        json!({ "description": description, "schema": schema })
    };
    let number = |description| header("integer", description);
    json!({
        "RateLimit-Policy": header("string", "The limits: q is the capacity, w the seconds in \
            which it is restored. Style draft11; in draft6 the capacity and w of the binding \
            limit."),
        "RateLimit": header("string", "The remainder of each limit: r is the greatest cost that \
            would be admitted, t the seconds until more remains. Style draft11."),
        "RateLimit-Limit": number("The capacity of the binding limit. Style draft6."),
        "RateLimit-Remaining": number("The greatest cost that would be admitted. Style draft6."),
        "RateLimit-Reset": number("The seconds until more remains. Style draft6."),
        "X-RateLimit-Limit": number("The capacity of the binding limit. Styles legacy-…."),
        "X-RateLimit-Remaining":
            number("The greatest cost that would be admitted. Styles legacy-…."),
        "X-RateLimit-Reset": number("When more remains: in seconds from now in legacy-delta, since \
            the Unix epoch in legacy-epoch."),
        "Retry-After": number("The seconds after which the same request would be admitted, rounded \
            up."),
        "WWW-Authenticate": header("string", "Bearer."),
        "Allow": header("string", "The methods that the path supports."),
    })
}
