//! Dynamic metadata in the format of envoyproxy/ratelimit: the domain, the descriptors, and the
//! metadata of the rules that did not deny.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};

use super::descriptor::{Descriptor, Target};
use super::descriptor_status::DescriptorReply;

pub(super) fn metadata(
    request: &RateLimitRequest,
    descriptors: &[Descriptor<'_>],
    replies: &[DescriptorReply],
) -> Struct {
    let mut metadata = Struct::default();
    let mut put = |name: &str, kind| metadata.fields.insert(name.to_owned(), value(kind));
    put("domain", Kind::StringValue(request.domain.clone()));
    put("descriptors", list(request.descriptors.iter().map(descriptor_fields)));
    if request.hits_addend != 0 {
        put("hitsAddend", Kind::NumberValue(f64::from(request.hits_addend)));
    }
    let mut merged = Struct::default();
    for (descriptor, reply) in descriptors.iter().zip(replies) {
        if let Target::Rule(rule) = &descriptor.target
            && let Some(metadata) = &rule.rule.metadata
            && !reply.denies()
            && !rule.rule.is_unlimited()
        {
            merge(&mut merged, metadata);
        }
    }
    if !merged.fields.is_empty() {
        put("metadata", Kind::StructValue(merged));
    }
    metadata
}

fn descriptor_fields(descriptor: &RateLimitDescriptor) -> Kind {
    let mut fields = Struct::default();
    let mut put = |name: &str, kind| fields.fields.insert(name.to_owned(), value(kind));
    let entry = |entry: &Entry| Kind::StringValue(format!("{}={}", entry.key, entry.value));
    put("entries", list(descriptor.entries.iter().map(entry)));
    if let Some(limit) = &descriptor.limit {
        put("limit", Kind::StringValue(limit_text(limit)));
    }
    if let Some(hits) = &descriptor.hits_addend {
        put("hitsAddend", Kind::NumberValue(number(hits.value)));
    }
    Kind::StructValue(fields)
}

/// A limit in the text format of protobuf.
fn limit_text(limit: &RateLimitOverride) -> String {
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

/// The nearest number in JSON, which is exact up to 2^53.
#[expect(clippy::expect_used, reason = "digits are always a valid number")]
fn number(number: u64) -> f64 {
    number.to_string().parse().expect("digits are a number")
}

fn list(kinds: impl Iterator<Item = Kind>) -> Kind {
    Kind::ListValue(ListValue { values: kinds.map(value).collect() })
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

/// Adds missing fields, recursively.
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
