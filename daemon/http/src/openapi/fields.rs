//! The schemas of parameters.

use serde_json::{Value, json};
use tollgate::Cost;
use tollgate_algorithms::{MAX_CHECKS, MAX_KEY_LEN, MAX_REQUEST_ID_LEN};
use tollgate_engine::{CHECK_PARAMETERS, Parameter};
use tollgate_insight::{MAX_KEY_BYTES, MAX_NOTE_BYTES, Order};

use super::parts::{described, schema_ref, text};
use crate::object::STATUS;

/// 32 hexadecimal digits.
pub(super) const ID: &str = "^[0-9A-Fa-f]{32}$";

/// The schemas of all parameters, by name.
pub(super) fn all() -> impl Iterator<Item = (String, Value)> {
    Parameter::ALL
        .into_iter()
        .map(|parameter| (parameter.name().to_owned(), schema(parameter)))
        .chain([(STATUS.to_owned(), status())])
}

fn status() -> Value {
    described(json!({ "type": "string", "enum": ["200"] }), "Gives every decision the status 200.")
}

fn schema(parameter: Parameter) -> Value {
    match parameter {
        Parameter::Policy => example_text("The name of a policy of the configuration.", "api"),
        Parameter::Tier => example_text("A tier of the policy.", "pro"),
        Parameter::Limit => example_text(
            "Limits in place of a policy, in the notation of the configuration. They need the scope \
             operate.",
            "10/s burst 20",
        ),
        Parameter::Domain => example_text(
            "A domain of Envoy's rate limit service, with descriptor in place of policy and key.",
            "edge",
        ),
        Parameter::Descriptor => example_text(
            "The entries of a descriptor, joined by ;, with %25, %3B and %3D for %, ; and =.",
            "remote_address=10.0.0.1;path=/login",
        ),
        Parameter::Key => bounded(
            MAX_KEY_LEN,
            example_text(
                "The identity to limit. The length is in bytes; the configuration may allow less.",
                "user:42",
            ),
        ),
        Parameter::KeyBase64 => bounded(
            MAX_KEY_LEN.div_ceil(3).saturating_mul(4),
            example_text("The identity to limit as base64, where it is not UTF-8.", "dXNlcjo0Mg=="),
        ),
        Parameter::Cost => json!({
            "type": "integer",
            "minimum": 0,
            "maximum": Cost::MAX.get(),
            "default": 1,
            "description": "The amount that is charged, taken at most, given back or penalized; to settle, the \
                actual cost, which is required.",
        }),
        Parameter::Note => note(),
        Parameter::Order => order(),
        Parameter::Prefix => {
            bounded(MAX_KEY_BYTES, example_text("What the keys begin with.", "user:"))
        }
        Parameter::Cursor => example_text("The cursor of the previous page.", "5f0c2a7b0"),
        Parameter::Checks => json!({
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_CHECKS,
            "items": object(CHECK_PARAMETERS, &[]),
            "description": "Checks that are executed together: all are charged, or none is.",
        }),
        Parameter::RequestId => bounded(
            MAX_REQUEST_ID_LEN,
            example_text(
                "The idempotency key: a repeated request with the same id is not charged again. To \
                 settle, that of the check.",
                "5f0c2a",
            ),
        ),
        Parameter::MaxWait => duration("The longest acceptable delay; unlimited by default."),
        Parameter::For => duration("The duration; unlimited by default."),
        Parameter::LeaseId => id("The lease. Where one is acquired, a random id by default."),
        Parameter::ReservationId => {
            id("The reservation. Where one is made, a random id by default.")
        }
        Parameter::Time => json!({
            "type": "number",
            "minimum": 0,
            "description": "The time of the decision that is undone; by default the newest charges \
                are undone first.",
            "examples": [1_763_650_000],
        }),
    }
}

fn note() -> Value {
    let description = "A comment, which decides nothing; a policy with track.recent records it.";
    bounded(MAX_NOTE_BYTES, example_text(description, "GET /search"))
}

fn order() -> Value {
    described(
        json!({ "type": "string", "enum": Order::ALL.map(Order::as_str), "default": "newest" }),
        "The order: by the last request, or by the number of requests or denials. most-denied \
         leaves out keys without denials.",
    )
}

fn example_text(description: &str, example: &str) -> Value {
    let mut schema = text(description);
    schema["examples"] = json!([example]);
    schema
}

/// A string with a length between one and a maximum.
fn bounded(max_len: usize, mut text: Value) -> Value {
    text["minLength"] = json!(1);
    text["maxLength"] = json!(max_len);
    text
}

fn duration(description: &str) -> Value {
    json!({
        "type": ["number", "string"],
        "minimum": 0,
        "description": format!("{description} Seconds, or a string such as 30s."),
        "examples": ["30s"],
    })
}

fn id(description: &str) -> Value {
    json!({
        "type": "string",
        "pattern": ID,
        "description": description,
        "examples": ["0000000000000000000000000000000a"],
    })
}

/// The schema of a request or a check with these parameters.
pub(super) fn object(parameters: &[Parameter], required: &[Parameter]) -> Value {
    let properties: serde_json::Map<_, _> = parameters
        .iter()
        .map(|parameter| (parameter.name().to_owned(), schema_ref(parameter.name())))
        .collect();
    use Parameter::{Descriptor, Domain, Key, KeyBase64, Limit, Policy, Tier};
    let policy = json!({ "allOf": [
        // Only a policy has tiers.
        not_both(Limit, Tier),
        exactly_one(&[Policy, Limit]),
        exactly_one(&[Key, KeyBase64]),
    ] });
    let is_one = match parameters.contains(&Domain) {
        false => policy,
        true => json!({ "allOf": [
            not_both(Limit, Tier),
            not_both(Domain, Tier),
            exactly_one(&[Policy, Limit, Domain]),
            exactly_one(&[Key, KeyBase64, Descriptor]),
            // Both or neither.
            { "oneOf": [
                { "required": [Domain.name(), Descriptor.name()] },
                { "allOf": [
                    { "not": { "required": [Domain.name()] } },
                    { "not": { "required": [Descriptor.name()] } },
                ] },
            ] },
        ] }),
    };
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    // Each check has its own cost.
    let (of_check, of_request): (Vec<_>, Vec<_>) =
        required.iter().partition(|parameter| CHECK_PARAMETERS.contains(parameter));
    let names = |parameters: &[Parameter]| -> Value {
        parameters.iter().map(|parameter| parameter.name()).collect()
    };
    if !of_request.is_empty() {
        object["required"] = names(&of_request);
    }
    let is_several = json!({ "required": [Parameter::Checks.name()] });
    let forms = if parameters.contains(&Parameter::Checks) {
        let mut one = is_one;
        one["not"] = is_several.clone();
        if !of_check.is_empty() {
            one["required"] = names(&of_check);
        }
        json!([{ "oneOf": [one, is_several] }])
    } else {
        is_one["allOf"].clone()
    };
    object["allOf"] = forms;
    object
}

fn exactly_one(parameters: &[Parameter]) -> Value {
    let required = parameters.iter().map(|parameter| json!({ "required": [parameter.name()] }));
    json!({ "oneOf": required.collect::<Vec<_>>() })
}

fn not_both(one: Parameter, other: Parameter) -> Value {
    json!({ "not": { "required": [one.name(), other.name()] } })
}
