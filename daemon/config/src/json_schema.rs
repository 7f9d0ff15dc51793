//! The JSON Schema for editors, generated from the table.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json, json};

use super::schema::{Field, Format, Kind, ROOT, Scalar, Section};

/// The JSON Schema of the configuration file, draft 2020-12.
#[must_use]
pub fn config_schema() -> String {
    let mut schema = section(&ROOT);
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "tollgate.yaml".into();
    schema["description"] = "The configuration of Tollgate.".into();
    format!("{schema:#}\n")
}

fn section(section: &Section) -> Json {
    let properties: Map<_, _> =
        section.fields.iter().map(|f| (f.name.to_owned(), field(f))).collect();
    let required = section.fields.iter().filter(|field| field.required.is_some());
    let required: Vec<_> = required.map(|field| field.name).collect();
    if required.is_empty() {
        let types = ["object", "null"];
        return json!({ "type": types, "additionalProperties": false, "properties": properties });
    }
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "required": required,
    })
}

fn field(field: &Field) -> Json {
    let mut schema = match (&field.kind, field.required) {
        // A required field cannot be null.
        (Kind::List(many), Some(_)) => {
            json!({ "type": "array", "items": scalar(many, false), "minItems": 1 })
        }
        (Kind::Scalar(one), Some(_)) => scalar(one, false),
        (value, _) => kind(value),
    };
    schema["title"] = field.name.into();
    schema["description"] = field.about.into();
    if let Some(default) = default(field) {
        schema["default"] = default;
    }
    schema
}

/// The default as JSON, if there is one.
fn default(field: &Field) -> Option<Json> {
    match (&field.kind, field.default) {
        (_, "") | (Kind::Section(_), _) => None,
        (Kind::List(_) | Kind::ScalarOrList(_), _) => Some(field.default_words().collect()),
        (Kind::Scalar(Scalar::Text | Scalar::Format(_) | Scalar::Path { .. }), text)
            if text != "null" =>
        {
            Some(text.into())
        }
        // Numbers, true, false, null, [] and {} are JSON; anything else, such as `5s`, is a string.
        (_, text) => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
    }
}

fn kind(kind: &Kind) -> Json {
    match kind {
        Kind::Scalar(one) => scalar(one, true),
        Kind::List(many) => json!({ "type": ["array", "null"], "items": scalar(many, false) }),
        Kind::ScalarOrList(one_or_many) => json!({ "anyOf": [
            { "type": "array", "items": scalar(one_or_many, false) },
            scalar(one_or_many, true),
        ] }),
        Kind::ListOr(many_or, word) => json!({ "anyOf": [
            { "type": "array", "items": scalar(many_or, false), "minItems": 1 },
            { "const": word },
        ] }),
        Kind::Section(value) => section(value),
        Kind::Sections(sections) => {
            json!({ "type": ["array", "null"], "items": section(sections) })
        }
        Kind::Map(names, inner) => json!({
            "type": ["object", "null"],
            // Names are always strings in JSON.
            "propertyNames": pattern(names),
            "additionalProperties": self::kind(inner),
        }),
    }
}

fn pattern(scalar: &Scalar) -> Json {
    match scalar {
        Scalar::Format(Format { pattern: Some(pattern), .. }) => json!({ "pattern": pattern }),
        _ => json!({}),
    }
}

fn scalar(scalar: &Scalar, may_be_null: bool) -> Json {
    // A pattern applies only to strings, and bounds apply only to numbers.
    let (types, mut schema) = match scalar {
        Scalar::Text | Scalar::Path { .. } | Scalar::Format(_) => {
            (&["string", "number"][..], pattern(scalar))
        }
        Scalar::Duration { .. } => {
            (&["string"][..], json!({ "pattern": "^\\s*[0-9]+\\s*[A-Za-z]+\\s*$" }))
        }
        Scalar::Bytes { min, max } => (
            &["integer", "string"][..],
            json!({ "minimum": min, "maximum": max, "pattern": "^[0-9]+\\s*(B|KiB|MiB|GiB)?$" }),
        ),
        Scalar::Count { min, max: u64::MAX } => (&["integer"][..], json!({ "minimum": min })),
        Scalar::Count { min, max } => (&["integer"][..], json!({ "minimum": min, "maximum": max })),
        Scalar::Bool => (&["boolean"][..], json!({})),
        Scalar::Keyword { words } => {
            let mut all: Vec<Json> = words.iter().map(|word| Json::from(*word)).collect();
            if may_be_null {
                all.push(Json::Null);
            }
            return json!({ "enum": all });
        }
        Scalar::Address => (&["string"][..], json!({ "pattern": "^(off|unix:.+|.+:[0-9]{1,5})$" })),
    };
    let mut types: Vec<_> = types.to_vec();
    if may_be_null {
        types.push("null");
    }
    schema["type"] = types.into();
    schema
}
