//! What Envoy is told as dynamic metadata, in the reference's form: the domain, the descriptors,
//! and what the rules tell of those that passed.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use super::asked::{Asked, Target};
use super::status::Spoken;

pub(super) fn metadata(
    request: &RateLimitRequest,
    asked: &[Asked<'_>],
    spoken: &[Spoken],
) -> Struct {
    let mut metadata = Struct::default();
    let mut put = |name: &str, kind| metadata.fields.insert(name.to_owned(), value(kind));
    put("domain", Kind::StringValue(request.domain.clone()));
    put("descriptors", list(request.descriptors.iter().map(descriptor)));
    if request.hits_addend != 0 {
        put("hitsAddend", Kind::NumberValue(f64::from(request.hits_addend)));
    }
    let mut told = Struct::default();
    for (asked, spoken) in asked.iter().zip(spoken) {
        if let (Target::Rule(rule), false) = (&asked.target, spoken.denies())
            && let (Some(of_rule), false) = (&rule.rule.metadata, rule.rule.is_unlimited())
        {
            merge(&mut told, of_rule);
        }
    }
    if !told.fields.is_empty() {
        put("metadata", Kind::StructValue(told));
    }
    metadata
}

fn descriptor(descriptor: &RateLimitDescriptor) -> Kind {
    let mut told = Struct::default();
    let mut put = |name: &str, kind| told.fields.insert(name.to_owned(), value(kind));
    let entry = |key: &str, value: &str| Kind::StringValue(format!("{key}={value}"));
    put("entries", list(descriptor.entries.iter().map(|e| entry(&e.key, &e.value))));
    if let Some(limit) = &descriptor.limit {
        put("limit", Kind::StringValue(text_of(limit)));
    }
    if let Some(hits) = &descriptor.hits_addend {
        put("hitsAddend", Kind::NumberValue(number(hits.value)));
    }
    Kind::StructValue(told)
}

/// A limit as the text form of its message.
fn text_of(limit: &RateLimitOverride) -> String {
    let mut text = String::new();
    if limit.requests_per_unit != 0 {
        text = format!("requests_per_unit:{}", limit.requests_per_unit);
    }
    if limit.unit != 0 {
        let unit = RateLimitUnit::try_from(limit.unit);
        let unit =
            unit.map_or_else(|_| limit.unit.to_string(), |unit| unit.as_str_name().to_owned());
        text.push_str(if text.is_empty() { "unit:" } else { " unit:" });
        text.push_str(&unit);
    }
    text
}

/// The number as JSON has it, which is exact up to 2^53.
fn number(number: u64) -> f64 {
    number.to_string().parse().unwrap_or(f64::INFINITY)
}

fn list(kinds: impl Iterator<Item = Kind>) -> Kind {
    Kind::ListValue(ListValue { values: kinds.map(value).collect() })
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

/// Adds what is not there yet; where both have an object, what that lacks.
fn merge(into: &mut Struct, from: &Struct) {
    for (name, value) in &from.fields {
        let Some(known) = into.fields.get_mut(name) else {
            into.fields.insert(name.clone(), value.clone());
            continue;
        };
        if let (Some(Kind::StructValue(known)), Some(Kind::StructValue(more))) =
            (&mut known.kind, &value.kind)
        {
            merge(known, more);
        }
    }
}
