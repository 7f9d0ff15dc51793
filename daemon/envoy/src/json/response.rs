//! A response as JSON, which omits default values.

use std::fmt::{Display, Write};

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::{
    Code, DescriptorStatus, RateLimit,
};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{Struct, Value as WireValue};
use serde_json::{Number, Value};

/// Formats a response.
pub(super) fn to_json(response: &RateLimitResponse) -> String {
    let mut json = Object::default();
    json.put("overallCode", code(response.overall_code));
    json.put("statuses", list(response.statuses.iter().map(status)));
    json.put("responseHeadersToAdd", list(response.response_headers_to_add.iter().map(header)));
    json.put("dynamicMetadata", response.dynamic_metadata.as_ref().map(object));
    json.finish()
}

/// An object of the fields that have a value, in the order of the message.
#[derive(Default)]
struct Object(String);

impl Object {
    fn put(&mut self, name: &str, json: Option<impl Display>) {
        if let Some(json) = json {
            let separator = if self.0.is_empty() { "" } else { "," };
            // Writing to a string does not fail.
            let _ = write!(self.0, "{separator}\"{name}\":{json}");
        }
    }

    fn finish(self) -> String {
        format!("{{{}}}", self.0)
    }
}

fn status(status: &DescriptorStatus) -> String {
    let mut json = Object::default();
    json.put("code", code(status.code));
    json.put("currentLimit", status.current_limit.as_ref().map(limit));
    json.put("limitRemaining", number(status.limit_remaining));
    let reset = status.duration_until_reset.as_ref();
    json.put("durationUntilReset", reset.map(|reset| format!("\"{}s\"", reset.seconds)));
    json.finish()
}

fn limit(limit: &RateLimit) -> String {
    let mut json = Object::default();
    json.put("name", text(&limit.name));
    json.put("requestsPerUnit", number(limit.requests_per_unit));
    let unit = Unit::try_from(limit.unit).ok().filter(|unit| *unit != Unit::Unknown);
    json.put("unit", unit.map(|unit| Value::from(unit.as_str_name())));
    json.finish()
}

fn header(header: &HeaderValue) -> String {
    let mut json = Object::default();
    json.put("key", text(&header.key));
    json.put("value", text(&header.value));
    json.finish()
}

fn code(code: i32) -> Option<Value> {
    let code = Code::try_from(code).ok().filter(|code| *code != Code::Unknown)?;
    Some(code.as_str_name().into())
}

fn text(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| text.into())
}

fn number(number: u32) -> Option<u32> {
    (number != 0).then_some(number)
}

fn list(values: impl Iterator<Item = String>) -> Option<String> {
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| format!("[{}]", values.join(",")))
}

fn object(object: &Struct) -> Value {
    Value::Object(object.fields.iter().map(|(name, field)| (name.clone(), value(field))).collect())
}

fn value(wire: &WireValue) -> Value {
    match &wire.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => (*flag).into(),
        Some(Kind::NumberValue(number)) => float(*number),
        Some(Kind::StringValue(text)) => text.as_str().into(),
        Some(Kind::StructValue(fields)) => object(fields),
        Some(Kind::ListValue(list)) => list.values.iter().map(value).collect(),
    }
}

/// A number without a fraction is written without one.
fn float(number: f64) -> Value {
    let whole = number.to_string().parse::<i64>().ok().map(Number::from);
    whole.or_else(|| Number::from_f64(number)).map_or(Value::Null, Value::Number)
}
