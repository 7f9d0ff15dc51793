//! Metadata: whatever an operator wants to be told of a rule.

use std::collections::HashMap;

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use super::scalar::Scalar;
use super::{Body, Name, Node, printed_name};

/// What is written in fields, under names as they are written.
pub(super) fn metadata(fields: &[(Name, Node)]) -> Struct {
    named(fields, |it| it.text.clone())
}

fn named(fields: &[(Name, Node)], name: impl Fn(&Name) -> String) -> Struct {
    let fields = fields.iter().map(|(it, node)| (name(it), value(node)));
    Struct { fields: fields.collect::<HashMap<_, _>>() }
}

fn value(node: &Node) -> Value {
    let kind = match &node.body {
        Body::Nothing => Kind::NullValue(0),
        Body::Text(text) => scalar(Scalar::of(text, node.quoted)),
        Body::List(all) => Kind::ListValue(ListValue { values: all.iter().map(value).collect() }),
        // Further in, the reference writes a name as it prints what it means.
        Body::Fields(all) => Kind::StructValue(named(all, printed_name)),
    };
    Value { kind: Some(kind) }
}

fn scalar(scalar: Scalar<'_>) -> Kind {
    match scalar {
        Scalar::Nothing => Kind::NullValue(0),
        Scalar::Truth(it) => Kind::BoolValue(it),
        Scalar::Whole(it) => Kind::NumberValue(nearest(&it.to_string())),
        Scalar::Great(it) => Kind::NumberValue(nearest(&it.to_string())),
        Scalar::Float(it) => Kind::NumberValue(it),
        Scalar::Text(it) => Kind::StringValue(it.to_owned()),
    }
}

/// The number of the protocol that is nearest to a whole one: it knows no others.
fn nearest(digits: &str) -> f64 {
    digits.parse().unwrap_or(f64::NAN)
}
