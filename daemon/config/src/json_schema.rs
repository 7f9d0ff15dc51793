//! The JSON Schema for editors, generated from the table.

#[cfg(test)]
mod tests;

use serde_json::{Map, Value as Json, json};

use super::schema::{Field, Kind, ROOT, Scalar, Section};

/// The JSON Schema of the configuration file, draft 2020-12.
#[must_use]
pub fn config_schema() -> String {
    let mut schema = section(&ROOT);
    let said = [
        ("$schema", "https://json-schema.org/draft/2020-12/schema"),
        ("title", "tollgate.yaml"),
        ("description", "The configuration of Tollgate."),
    ];
    schema.extend(said.map(|(name, text)| (name.to_owned(), text.into())));
    format!("{:#}\n", Json::Object(schema))
}

fn section(section: &Section) -> Map<String, Json> {
    let properties = section.fields.iter().map(|f| (f.name.to_owned(), field(f)));
    let required: Vec<_> = section
        .fields
        .iter()
        .filter(|field| field.required.is_some())
        .map(|field| field.name)
        .collect();
    let mut schema = object(json!({ "type": ["object", "null"], "additionalProperties": false }));
    schema.insert("properties".to_owned(), Json::Object(properties.collect()));
    if !required.is_empty() {
        schema.insert("type".to_owned(), "object".into());
        schema.insert("required".to_owned(), required.into());
    }
    schema
}

fn field(field: &Field) -> Json {
    let mut schema = match (&field.kind, field.required) {
        // A required field cannot be null.
        (Kind::List(many), Some(_)) => {
            object(json!({ "type": "array", "items": scalar(many, false), "minItems": 1 }))
        }
        (Kind::Scalar(one), Some(_)) => scalar(one, false),
        (value, _) => kind(value),
    };
    schema.insert("title".to_owned(), field.name.into());
    schema.insert("description".to_owned(), field.about.into());
    if let Some(default) = default(field) {
        schema.insert("default".to_owned(), default);
    }
    Json::Object(schema)
}

/// The default as JSON, if there is one.
fn default(field: &Field) -> Option<Json> {
    match (&field.kind, field.default) {
        (_, "") | (Kind::Section(_), _) => None,
        (Kind::List(_) | Kind::ScalarOrList(_), list) => {
            let texts =
                list.trim_matches(['[', ']']).split(", ").map(|part| part.trim_matches('"'));
            Some(texts.filter(|text| !text.is_empty()).collect())
        }
        (Kind::Scalar(Scalar::Text | Scalar::Format(_) | Scalar::Path { .. }), text)
            if text != "null" =>
        {
            Some(text.into())
        }
        // Numbers, true, false, null, [] and {} are JSON; anything else, such as `5s`, is a string.
        (_, text) => Some(serde_json::from_str(text).unwrap_or_else(|_| text.into())),
    }
}

fn kind(kind: &Kind) -> Map<String, Json> {
    match kind {
        Kind::Scalar(one) => scalar(one, true),
        Kind::List(many) => {
            object(json!({ "type": ["array", "null"], "items": scalar(many, false) }))
        }
        Kind::ScalarOrList(one_or_many) => object(json!({ "anyOf": [
            { "type": "array", "items": scalar(one_or_many, false) },
            scalar(one_or_many, true),
        ] })),
        Kind::ListOr(many_or, word) => object(json!({ "anyOf": [
            { "type": "array", "items": scalar(many_or, false), "minItems": 1 },
            { "const": word },
        ] })),
        Kind::Section(value) => section(value),
        Kind::Sections(sections) => {
            object(json!({ "type": ["array", "null"], "items": section(sections) }))
        }
        Kind::Map(names, inner) => object(json!({
            "type": ["object", "null"],
            "propertyNames": names_of(names),
            "additionalProperties": self::kind(inner),
        })),
    }
}

/// The schema of names, which are always strings in JSON.
fn names_of(names: &Scalar) -> Json {
    match names {
        Scalar::Format(form) => {
            form.pattern.map_or(json!({}), |pattern| json!({ "pattern": pattern }))
        }
        _ => json!({}),
    }
}

fn scalar(scalar: &Scalar, may_be_null: bool) -> Map<String, Json> {
    // A pattern applies only to strings, and bounds apply only to numbers.
    let (types, mut schema) = match scalar {
        Scalar::Text | Scalar::Path { .. } => (&["string", "number"][..], json!({})),
        Scalar::Format(form) => (
            &["string", "number"][..],
            match form.pattern {
                Some(pattern) => json!({ "pattern": pattern }),
                None => json!({}),
            },
        ),
        Scalar::Duration { .. } => {
            (&["string"][..], json!({ "pattern": "^\\s*[0-9]+\\s*[A-Za-z]+\\s*$" }))
        }
        Scalar::Bytes { min, max } => (
            &["integer", "string"][..],
            json!({ "minimum": min, "maximum": max, "pattern": "^[0-9]+\\s*(B|KiB|MiB)?$" }),
        ),
        Scalar::Count { min, max: u64::MAX } => (&["integer"][..], json!({ "minimum": min })),
        Scalar::Count { min, max } => (&["integer"][..], json!({ "minimum": min, "maximum": max })),
        Scalar::Bool => (&["boolean"][..], json!({})),
        Scalar::Keyword { words, .. } => {
            let mut all: Vec<Json> = words.iter().map(|word| Json::from(*word)).collect();
            if may_be_null {
                all.push(Json::Null);
            }
            return object(json!({ "enum": all }));
        }
        Scalar::Address => (&["string"][..], json!({ "pattern": "^(off|unix:.+|.+:[0-9]{1,5})$" })),
    };
    let mut types: Vec<_> = types.to_vec();
    if may_be_null {
        types.push("null");
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("type".to_owned(), types.into());
    }
    object(schema)
}

fn object(json: Json) -> Map<String, Json> {
    match json {
        Json::Object(object) => object,
        _ => Map::new(),
    }
}
