//! Metadata: whatever an operator wants to be told of a rule.

use std::collections::HashMap;

use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use super::scalar::Scalar;
use super::{Body, Name, Node, printed_name};

/// What is written in fields, under names as they are written.
pub(super) fn metadata(fields: &[(Name, Node)]) -> Struct {
    named(fields, |x| x.text.clone())
}

fn named(fields: &[(Name, Node)], name: impl Fn(&Name) -> String) -> Struct {
    let fields = fields.iter().map(|(x, node)| (name(x), value(node)));
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
        Scalar::Truth(truth) => Kind::BoolValue(truth),
        Scalar::Whole(whole) => Kind::NumberValue(nearest(&whole.to_string())),
        Scalar::Great(great) => Kind::NumberValue(nearest(&great.to_string())),
        Scalar::Float(float) => Kind::NumberValue(float),
        Scalar::Text(text) => Kind::StringValue(text.to_owned()),
    }
}

/// The number of the protocol that is nearest to a whole one: it knows no others.
fn nearest(digits: &str) -> f64 {
    digits.parse().unwrap_or(f64::NAN)
}
