//! The schema and the daemon accept the same files.

use regex::Regex;
use serde_json::{Map, Number, Value as Json};

use super::config_schema;
use crate::Config;
use crate::layers::LIMITS;
use tollgate_document::{Body, Diagnostics, Node};

/// The first mistake that an editor would report.
fn error(schema: &Json, value: &Json, path: &str) -> Option<String> {
    let schema = schema.as_object().unwrap_or_else(|| panic!("{path}: {schema}"));
    schema.iter().find_map(|(keyword, argument)| {
        let is_valid = match keyword.as_str() {
            "$schema" | "title" | "description" | "default" => true,
            "type" => types(argument).any(|t| is_of_type(value, t)),
            "enum" => argument.as_array().unwrap().contains(value),
            "const" => argument == value,
            "pattern" => {
                let pattern = Regex::new(argument.as_str().unwrap()).unwrap();
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "minimum" => value.as_u64().is_none_or(|n| n >= argument.as_u64().unwrap()),
            "maximum" => value.as_u64().is_none_or(|n| n <= argument.as_u64().unwrap()),
            "minItems" => {
                let min = usize::try_from(argument.as_u64().unwrap()).unwrap();
                value.as_array().is_none_or(|array| array.len() >= min)
            }
            "required" => value.as_object().is_none_or(|object| {
                let mut names = argument.as_array().unwrap().iter();
                names.all(|name| object.contains_key(name.as_str().unwrap()))
            }),
            "anyOf" => {
                let mut ways = argument.as_array().unwrap().iter();
                ways.any(|way| error(way, value, path).is_none())
            }
            "items" => {
                let mut all = value.as_array().into_iter().flatten().enumerate();
                return all.find_map(|(at, one)| error(argument, one, &format!("{path}[{at}]")));
            }
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flat_map(Map::keys);
                return names.find_map(|name| error(argument, &Json::from(name.as_str()), path));
            }
            "properties" => {
                let mut known = argument.as_object().unwrap().iter();
                return known.find_map(|(name, schema)| {
                    error(schema, value.get(name)?, &format!("{path}.{name}"))
                });
            }
            "additionalProperties" => {
                let known = schema.get("properties").and_then(Json::as_object);
                let mut more = value.as_object().into_iter().flatten();
                return more.find_map(|(name, value)| match argument {
                    _ if known.is_some_and(|x| x.contains_key(name)) => None,
                    Json::Bool(false) => Some(format!("{path}: {name} is not known")),
                    schema => error(schema, value, &format!("{path}.{name}")),
                });
            }
            other => panic!("{path}: keyword {other} is not supported"),
        };
        (!is_valid).then(|| format!("{path}: {value} violates {keyword} {argument}"))
    })
}

fn types(argument: &Json) -> impl Iterator<Item = &str> {
    let one = argument.as_str().into_iter();
    one.chain(argument.as_array().into_iter().flatten().filter_map(Json::as_str))
}

fn is_of_type(value: &Json, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("JSON has no {other}"),
    }
}

/// A tree as JSON, in which plain scalars may be numbers or Booleans.
fn json(node: &Node) -> Json {
    match &node.body {
        Body::Nothing => Json::Null,
        Body::Text(text) => match &**text {
            "true" => true.into(),
            "false" => false.into(),
            text => match text.parse::<Number>() {
                Ok(text) => Json::Number(text),
                Err(_) => text.into(),
            },
        },
        Body::List(all) => all.iter().map(json).collect(),
        Body::Fields(all) => {
            all.iter().map(|(name, value)| (name.text.clone(), json(value))).collect()
        }
    }
}

fn error_of(yaml: &str) -> Option<String> {
    let schema = serde_json::from_str(&config_schema()).unwrap();
    let document = tollgate_document::parse(LIMITS, yaml, &Diagnostics::default()).unwrap();
    error(&schema, &json(&document), "")
}

#[test]
fn schema_accepts_what_the_daemon_accepts() {
    for yaml in [
        "",
        include_str!("../../tests/config/every_field.yaml"),
        include_str!("../../tests/config/every_field_of_redis.yaml"),
        "store: { data: null, url: null }\nlisten:\npolicies:\nlimits: { body: 65536, key_bytes: 64KiB }",
        "store: { url: \"valkey+cluster://a,b\" }",
        "listen: { http: off, metrics: \"[::]:9091\" }",
        "policies: { a: { limits: [5/min], allow: [7, \"*x\", y*], max_keys: 5 } }",
    ] {
        Config::from_yaml(yaml).unwrap_or_else(|error| panic!("{yaml}: {error}"));
        assert_eq!(error_of(yaml), None, "{yaml}");
    }
}

#[test]
fn daemon_rejects_what_the_schema_rejects() {
    for yaml in [
        "polices: {}",
        "namespace: a b",
        "store: { url: redsi://h }",
        "store: { max_keys: many }",
        "store: { max_keys: 0 }",
        "store: { table_full: block }",
        "limits: { checks: 33 }",
        "limits: { body: 64KB }",
        "limits: { idle: never }",
        "listen: { http: 8080 }",
        "policies: { api: {} }",
        "policies: { api: { limits: [] } }",
        "policies: { api: { limits: 10/s } }",
        "policies: { 7up: { limits: [10/s] } }",
        "policies: { api: { limits: [1/s], shadow: perhaps } }",
        "policies: { api: { limits: [1/s], overrides: { vip: some } } }",
        "policies: { api: { limits: [1/s], tiers: { \"a b\": unlimited } } }",
        "tokens: [{ token: 9b1f62c5d07e41aa, scopes: [check] }]",
        "tokens: [{ name: a, token: 9b1f62c5d07e41aa, scopes: [chek] }]",
        "tokens: [{ name: a, token: 9b1f62c5d07e41a, scopes: [check] }]",
        "tokens: [{ name: a, token_sha256: 9b1f62c5d07e41aa, scopes: [check] }]",
        "rules: [{ match: { path: api } }]",
        "headers: draft11",
        "ipv6_prefix: 0",
    ] {
        assert!(Config::from_yaml(yaml).is_err(), "{yaml}");
        assert!(error_of(yaml).is_some(), "{yaml}");
    }
}

/// Every default is valid under its own schema, and every section has a description.
#[test]
fn defaults_are_valid_and_sections_have_descriptions() {
    fn walk(schema: &Json, path: &str) {
        if let Some(default) = schema.get("default") {
            assert_eq!(error(schema, default, path), None);
        }
        for (name, inner) in
            schema.get("properties").and_then(Json::as_object).into_iter().flatten()
        {
            assert!(inner["description"].is_string() && inner["title"] == **name, "{path}.{name}");
            walk(inner, &format!("{path}.{name}"));
        }
        for inner in ["items", "additionalProperties"].iter().filter_map(|x| schema.get(x)) {
            walk(inner, path);
        }
    }
    walk(&serde_json::from_str(&config_schema()).unwrap(), "");
}
