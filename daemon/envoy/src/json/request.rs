//! Parsing a request from JSON, with field names in either form, numbers also as strings, and null
//! for absent fields.

use std::fmt;
use std::marker::PhantomData;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::UInt64Value;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

/// Parses a request.
///
/// # Errors
/// It is invalid, or has an unknown field.
pub(super) fn parse(json: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
    serde_json::from_slice::<Message<Request>>(json).map(|request| request.0.into())
}

/// A message, which is an object: serde would also accept a list of its fields.
struct Message<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Message<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Object(PhantomData)).map(Message)
    }
}

struct Object<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Request {
    domain: Option<String>,
    descriptors: Option<Vec<Message<Descriptor>>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<u32>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Descriptor {
    entries: Option<Vec<Message<JsonEntry>>>,
    limit: Option<Message<Limit>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Number<u64>>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct JsonEntry {
    key: Option<String>,
    value: Option<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Limit {
    #[serde(alias = "requests_per_unit")]
    requests_per_unit: Option<Number<u32>>,
    unit: Option<Unit>,
}

impl From<Request> for RateLimitRequest {
    /// An absent field has the default of protobuf.
    fn from(request: Request) -> Self {
        let descriptors = request.descriptors.into_iter().flatten();
        RateLimitRequest {
            domain: request.domain.unwrap_or_default(),
            descriptors: descriptors.map(|Message(descriptor)| descriptor.into()).collect(),
            hits_addend: request.hits_addend.map_or(0, |Number(hits)| hits),
        }
    }
}

impl From<Descriptor> for RateLimitDescriptor {
    /// An absent field has the default of protobuf.
    fn from(descriptor: Descriptor) -> Self {
        let entry = |Message(entry): Message<JsonEntry>| Entry {
            key: entry.key.unwrap_or_default(),
            value: entry.value.unwrap_or_default(),
        };
        let limit = |Message(limit): Message<Limit>| RateLimitOverride {
            requests_per_unit: limit.requests_per_unit.map_or(0, |Number(requests)| requests),
            unit: limit.unit.map_or(0, |Unit(unit)| unit),
        };
        RateLimitDescriptor {
            entries: descriptor.entries.into_iter().flatten().map(entry).collect(),
            limit: descriptor.limit.map(limit),
            hits_addend: descriptor.hits_addend.map(|Number(value)| UInt64Value { value }),
            is_negative_hits: descriptor.is_negative_hits.unwrap_or_default(),
        }
    }
}

/// A whole number, as a number or as a string.
struct Number<T>(T);

impl<'de, T: TryFrom<u64>> Deserialize<'de> for Number<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let number = from.deserialize_any(WholeNumber)?;
        let number = T::try_from(number).map_err(|_| D::Error::custom("the number is too large"));
        number.map(Number)
    }
}

struct WholeNumber;

impl Visitor<'_> for WholeNumber {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of at least 0")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        // `1e2` and `5.0` are whole numbers, and are formatted as such.
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        text.parse().map_err(|_| E::custom("not a whole number of at least 0"))
    }
}

/// A unit by its name or its number.
struct Unit(i32);

impl<'de> Deserialize<'de> for Unit {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Either {
            Name(String),
            Number(i32),
        }
        match Either::deserialize(from)? {
            Either::Number(number) => Ok(Unit(number)),
            Either::Name(name) => match RateLimitUnit::from_str_name(&name) {
                Some(value) => Ok(Unit(value.into())),
                None => Err(D::Error::custom("not the name of a unit")),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A summary of the request: `domain+hits: key=value count/unit +hits; …`.
    fn summary(json: &str) -> Option<String> {
        let request = parse(json.as_bytes()).ok()?;
        let mut summary = format!("{}+{}:", request.domain, request.hits_addend);
        for descriptor in request.descriptors {
            for entry in descriptor.entries {
                summary.push_str(&format!(" {}={}", entry.key, entry.value));
            }
            if let Some(limit) = descriptor.limit {
                summary.push_str(&format!(" {}/{}", limit.requests_per_unit, limit.unit));
            }
            let sign = if descriptor.is_negative_hits { "-" } else { "+" };
            if let Some(hits) = descriptor.hits_addend {
                summary.push_str(&format!(" {sign}{}", hits.value));
            }
            summary.push(';');
        }
        Some(summary)
    }

    #[test]
    fn the_json_mapping_of_protobuf_is_accepted() {
        for (json, expected) in [
            ("{}", Some("+0:")),
            (
                r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#,
                Some("d+0: k=v;"),
            ),
            (r#"{"descriptors":[{"entries":[{"key":"k"},{}]},{}]}"#, Some("+0: k= =;;")),
            (r#"{"domain":null,"descriptors":null,"hitsAddend":null}"#, Some("+0:")),
            (r#"{"hitsAddend":7}"#, Some("+7:")),
            (r#"{"hits_addend":"7"}"#, Some("+7:")),
            (r#"{"hitsAddend":7.0}"#, Some("+7:")),
            (r#"{"hitsAddend":1e2}"#, Some("+100:")),
            (
                r#"{"descriptors":[{"hitsAddend":"18446744073709551615","isNegativeHits":true}]}"#,
                Some("+0: -18446744073709551615;"),
            ),
            (r#"{"descriptors":[{"hits_addend":0,"is_negative_hits":false}]}"#, Some("+0: +0;")),
            (
                r#"{"descriptors":[{"limit":{"requestsPerUnit":5,"unit":"MINUTE"}}]}"#,
                Some("+0: 5/2;"),
            ),
            (r#"{"descriptors":[{"limit":{"requests_per_unit":"5","unit":3}}]}"#, Some("+0: 5/3;")),
            (r#"{"descriptors":[{"limit":{}}]}"#, Some("+0: 0/0;")),
            ("", None),
            ("[]", None),
            (r#"["d"]"#, None),
            (r#"{"descriptors":[[]]}"#, None),
            (r#"{"descriptors":[{"entries":[["k","v"]]}]}"#, None),
            (r#"{"descriptors":[{"limit":[5,2]}]}"#, None),
            ("null", None),
            (r#"{"unknown":1}"#, None),
            (r#"{"domain":1}"#, None),
            (r#"{"domain":"a","domain":"b"}"#, None),
            (r#"{"hitsAddend":1,"hits_addend":1}"#, None),
            (r#"{"hitsAddend":-1}"#, None),
            (r#"{"hitsAddend":0.5}"#, None),
            (r#"{"hitsAddend":4294967296}"#, None),
            (r#"{"hitsAddend":"0x1"}"#, None),
            (r#"{"descriptors":[null]}"#, None),
            (r#"{"descriptors":[{"limit":{"unit":"FORTNIGHT"}}]}"#, None),
            (r#"{"descriptors":[{"hitsAddend":18446744073709551616}]}"#, None),
            (r#"{"domain":"d"} more"#, None),
        ] {
            assert_eq!(summary(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn deep_nesting_is_rejected() {
        for json in ["[".repeat(100_000), r#"{"descriptors":["#.repeat(100_000)] {
            assert!(parse(json.as_bytes()).is_err());
        }
    }
}
