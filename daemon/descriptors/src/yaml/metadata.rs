//! Metadata of rules, which responses to Envoy contain.

use std::collections::HashMap;

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use super::scalar::Scalar;
use super::{Body, Name, Node, printed_name};

/// Converts a mapping, with names as written.
pub(super) fn metadata(fields: &[(Name, Node)]) -> Struct {
    named(fields, |name| name.text.clone())
}

fn named(fields: &[(Name, Node)], name: impl Fn(&Name) -> String) -> Struct {
    let fields = fields.iter().map(|(field, node)| (name(field), value(node)));
    Struct { fields: fields.collect::<HashMap<_, _>>() }
}

fn value(node: &Node) -> Value {
    let kind = match &node.body {
        Body::Nothing => Kind::NullValue(0),
        Body::Text(text) => scalar(Scalar::parse(text, node.quoted)),
        Body::List(all) => Kind::ListValue(ListValue { values: all.iter().map(value).collect() }),
        // In nested mappings, envoyproxy/ratelimit prints the parsed name.
        Body::Fields(all) => Kind::StructValue(named(all, printed_name)),
    };
    Value { kind: Some(kind) }
}

fn scalar(scalar: Scalar<'_>) -> Kind {
    match scalar {
        Scalar::Nothing => Kind::NullValue(0),
        Scalar::Bool(flag) => Kind::BoolValue(flag),
        Scalar::Integer(number) => Kind::NumberValue(nearest(&number.to_string())),
        Scalar::Unsigned(number) => Kind::NumberValue(nearest(&number.to_string())),
        Scalar::Float(number) => Kind::NumberValue(number),
        Scalar::Text(text) => Kind::StringValue(text.to_owned()),
    }
}

/// The nearest double, the only number type of the protocol.
#[expect(clippy::expect_used, reason = "the digits of an integer are always a valid number")]
fn nearest(digits: &str) -> f64 {
    digits.parse().expect("digits are a number")
}
