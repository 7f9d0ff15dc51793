//! A validator for the JSON Schema keywords in the document. It panics on any other keyword, so
//! that none is ignored.

use serde_json::Value;

/// Keywords that do not constrain values.
const ANNOTATIONS: [&str; 4] = ["description", "examples", "default", "title"];

/// Validates a value.
///
/// # Errors
/// The first keyword that the value violates.
pub(crate) fn check(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let object = value.as_object();
    for (keyword, argument) in schema.as_object().unwrap() {
        let is_valid = match &**keyword {
            "$ref" => return check(document, resolve(document, argument), value),
            "type" => has_type(argument, value),
            "enum" => argument.as_array().unwrap().contains(value),
            "const" => argument == value,
            "properties" => {
                properties(document, argument, value)?;
                true
            }
            "required" => {
                let mut names = argument.as_array().unwrap().iter();
                object.is_none_or(|object| {
                    names.all(|name| object.contains_key(name.as_str().unwrap()))
                })
            }
            "additionalProperties" => {
                assert_eq!(argument, &Value::Bool(false));
                let known = schema["properties"].as_object().unwrap();
                object.is_none_or(|object| object.keys().all(|name| known.contains_key(name)))
            }
            "items" => {
                for item in value.as_array().into_iter().flatten() {
                    check(document, argument, item)?;
                }
                true
            }
            "oneOf" => {
                let all = argument.as_array().unwrap().iter();
                all.filter(|schema| check(document, schema, value).is_ok()).count() == 1
            }
            "allOf" => {
                for part in argument.as_array().unwrap() {
                    check(document, part, value)?;
                }
                true
            }
            "not" => check(document, argument, value).is_err(),
            "minimum" => value.as_f64().is_none_or(|value| value >= argument.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|value| value <= argument.as_f64().unwrap()),
            "minLength" => length(value).is_none_or(|length| length >= argument.as_u64().unwrap()),
            "maxLength" => length(value).is_none_or(|length| length <= argument.as_u64().unwrap()),
            "minItems" => items(value).is_none_or(|item| item >= argument.as_u64().unwrap()),
            "maxItems" => items(value).is_none_or(|item| item <= argument.as_u64().unwrap()),
            "pattern" => matches(argument.as_str().unwrap(), value),
            keyword if ANNOTATIONS.contains(&keyword) => true,
            keyword => panic!("the validator does not know {keyword}"),
        };
        if !is_valid {
            return Err(format!("{value} violates {keyword}: {argument}"));
        }
    }
    Ok(())
}

/// Resolves a `$ref`.
pub(crate) fn resolve<'a>(document: &'a Value, reference: &Value) -> &'a Value {
    let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
    document.pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}"))
}

fn properties(document: &Value, schemas: &Value, value: &Value) -> Result<(), String> {
    for (name, schema) in schemas.as_object().unwrap() {
        if let Some(value) = value.get(name) {
            check(document, schema, value).map_err(|error| format!("{name}: {error}"))?;
        }
    }
    Ok(())
}

fn has_type(types: &Value, value: &Value) -> bool {
    let is = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the validator does not know the type {other}"),
    };
    types.as_array().map_or_else(|| is(types), |array| array.iter().any(is))
}

fn length(value: &Value) -> Option<u64> {
    value.as_str().map(|text| text.chars().count().try_into().unwrap())
}

fn items(value: &Value) -> Option<u64> {
    value.as_array().map(|array| array.len().try_into().unwrap())
}

fn matches(pattern: &str, value: &Value) -> bool {
    let Some(text) = value.as_str() else { return true };
    match pattern {
        "^[0-9A-Fa-f]{32}$" => {
            text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        other => panic!("the validator does not know the pattern {other}"),
    }
}

#[test]
fn invalid_values_are_rejected() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "a": { "type": ["integer", "null"], "minimum": 1, "maximum": 3 },
            "b": { "type": "string", "minLength": 1, "maxLength": 2 },
            "c": { "type": "array", "items": { "const": true }, "minItems": 1, "maxItems": 2 },
            "d": { "enum": ["x"] },
            "e": { "pattern": "^[0-9A-Fa-f]{32}$" },
        },
        "required": ["a"],
        "additionalProperties": false,
        "allOf": [{ "not": { "required": ["d", "e"] } }],
        "oneOf": [{ "required": ["b"] }, { "required": ["c"] }],
    });
    for (json, is_valid) in [
        (r#"{"a":1,"b":"é"}"#, true),
        (r#"{"a":null,"c":[true]}"#, true),
        (r#"{"a":3,"b":"xx","d":"x"}"#, true),
        (r#"[]"#, false),
        (r#"{"b":"x"}"#, false),
        (r#"{"a":1}"#, false),
        (r#"{"a":1,"b":"x","c":[true]}"#, false),
        (r#"{"a":0,"b":"x"}"#, false),
        (r#"{"a":4,"b":"x"}"#, false),
        (r#"{"a":1.5,"b":"x"}"#, false),
        (r#"{"a":"1","b":"x"}"#, false),
        (r#"{"a":1,"b":""}"#, false),
        (r#"{"a":1,"b":"xxx"}"#, false),
        (r#"{"a":1,"c":[]}"#, false),
        (r#"{"a":1,"c":[false]}"#, false),
        (r#"{"a":1,"c":[true,true,true]}"#, false),
        (r#"{"a":1,"b":"x","d":"y"}"#, false),
        (r#"{"a":1,"b":"x","e":"0a"}"#, false),
        (r#"{"a":1,"b":"x","d":"x","e":"0000000000000000000000000000000a"}"#, false),
        (r#"{"a":1,"b":"x","z":1}"#, false),
    ] {
        let value = serde_json::from_str(json).unwrap();
        assert_eq!(check(&Value::Null, &schema, &value).is_ok(), is_valid, "{json}");
    }
}
