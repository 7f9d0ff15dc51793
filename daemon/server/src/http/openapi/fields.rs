//! The fields of requests: what each may be.

use serde_json::{Value, json};
use tollgate::Cost;
use tollgate_core::{MAX_CHECKS, MAX_KEY_LEN, MAX_REQUEST_ID_LEN};

use super::super::field::Field;
use super::super::verbs::FIELDS_OF_CHECK;

/// 32 hexadecimal digits.
pub(super) const ID: &str = "^[0-9A-Fa-f]{32}$";

/// What all fields may be, by their names.
pub(super) fn all() -> impl Iterator<Item = (String, Value)> {
    Field::all().map(|x| (x.name().to_owned(), schema(x)))
}

/// Where it is said what a field may be.
pub(super) fn reference(field: Field) -> Value {
    json!({ "$ref": format!("#/components/schemas/{}", field.name()) })
}

/// What a field may be.
fn schema(field: Field) -> Value {
    match field {
        Field::Policy => text("The name of a policy of the configuration.", "api"),
        Field::Tier => text("The tier of the policy's limits; a policy has those it names.", "pro"),
        Field::Limit => text(
            "Limits in place of a policy, in the notation of the configuration. For operators: from \
             loopback, or with the scope operate.",
            "10/s burst 20",
        ),
        Field::Key => bounded(
            MAX_KEY_LEN,
            text(
                "Who is limited. The bounds are in bytes; the configuration may set less.",
                "user:42",
            ),
        ),
        Field::KeyBase64 => bounded(
            MAX_KEY_LEN.div_ceil(3).saturating_mul(4),
            text("Who is limited, where that is not UTF-8: the bytes in base64.", "dXNlcjo0Mg=="),
        ),
        Field::Cost => json!({
            "type": "integer",
            "minimum": 0,
            "maximum": Cost::MAX.get(),
            "default": 1,
            "description": "How much: what is charged, taken at most, given back, penalized.",
        }),
        Field::Note => text("A note on the check, which changes nothing.", "GET /search"),
        Field::Checks => json!({
            "type": "array",
            "minItems": 1,
            "maxItems": MAX_CHECKS,
            "items": object(FIELDS_OF_CHECK, &[]),
            "description": "Checks that are decided together: all are charged, or none is.",
        }),
        Field::RequestId => bounded(
            MAX_REQUEST_ID_LEN,
            text("Names the request: sent again with it, it is not charged again.", "5f0c2a"),
        ),
        Field::MaxWait => duration("The longest delay that is accepted; any without it."),
        Field::For => duration("For how long; for ever without it."),
        Field::LeaseId => id("The lease; where it is to be taken, one is drawn without it."),
        Field::ReservationId => id("The reservation; one is drawn where it is to be made."),
        Field::Time => json!({
            "type": "number",
            "minimum": 0,
            "description": "The time of the decision that is undone; the newest charges go first \
                without it.",
            "examples": [1_763_650_000],
        }),
        Field::Status => json!({
            "type": "string",
            "enum": ["200"],
            "description": "Gives every decision the status 200.",
        }),
    }
}

fn text(description: &str, example: &str) -> Value {
    json!({ "type": "string", "description": description, "examples": [example] })
}

/// A text of at least one and at most so many characters.
fn bounded(most: usize, mut text: Value) -> Value {
    text["minLength"] = json!(1);
    text["maxLength"] = json!(most);
    text
}

fn duration(description: &str) -> Value {
    json!({
        "type": ["number", "string"],
        "minimum": 0,
        "description": format!("{description} Seconds, or a text such as 30s."),
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

/// An object of these fields, as a request or a check has them.
pub(super) fn object(fields: &[Field], needs: &[Field]) -> Value {
    let properties: serde_json::Map<_, _> =
        fields.iter().map(|field| (field.name().to_owned(), reference(*field))).collect();
    let is_one = json!({ "allOf": [
        // Only a policy has tiers.
        { "not": { "required": [Field::Limit.name(), Field::Tier.name()] } },
        one_of(Field::Policy, Field::Limit),
        one_of(Field::Key, Field::KeyBase64),
    ] });
    let mut object = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !needs.is_empty() {
        object["required"] = needs.iter().map(|need| need.name()).collect();
    }
    let is_several = json!({ "required": [Field::Checks.name()] });
    let forms = if fields.contains(&Field::Checks) {
        let mut one = is_one;
        one["not"] = is_several.clone();
        json!([{ "oneOf": [one, is_several] }])
    } else {
        is_one["allOf"].clone()
    };
    object["allOf"] = forms;
    object
}

fn one_of(one: Field, other: Field) -> Value {
    json!({ "oneOf": [{ "required": [one.name()] }, { "required": [other.name()] }] })
}
