//! A request out of JSON: names of fields in either form, numbers also as texts, null for what is
//! not there.

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

/// Reads a request.
///
/// # Errors
/// It is none, or has a field that is not known.
pub(crate) fn request(json: &[u8]) -> Result<RateLimitRequest, serde_json::Error> {
    serde_json::from_slice::<Message<Request>>(json).map(|x| x.0.into())
}

/// A message, which is an object and never a list of its fields.
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
    fn from(it: Request) -> Self {
        RateLimitRequest {
            domain: it.domain.unwrap_or_default(),
            descriptors: it
                .descriptors
                .into_iter()
                .flatten()
                .map(|descriptor| descriptor.0.into())
                .collect(),
            hits_addend: it.hits_addend.map_or(0, |hits_addend| hits_addend.0),
        }
    }
}

impl From<Descriptor> for RateLimitDescriptor {
    fn from(it: Descriptor) -> Self {
        let entry = |Message(x): Message<JsonEntry>| Entry {
            key: x.key.unwrap_or_default(),
            value: x.value.unwrap_or_default(),
        };
        let limit = |Message(x): Message<Limit>| RateLimitOverride {
            requests_per_unit: x
                .requests_per_unit
                .map_or(0, |requests_per_unit| requests_per_unit.0),
            unit: x.unit.map_or(0, |unit| unit.0),
        };
        RateLimitDescriptor {
            entries: it.entries.into_iter().flatten().map(entry).collect(),
            limit: it.limit.map(limit),
            hits_addend: it.hits_addend.map(|hits_addend| UInt64Value { value: hits_addend.0 }),
            is_negative_hits: it.is_negative_hits.unwrap_or_default(),
        }
    }
}

/// A whole number, as one or as a text.
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
        // `1e2` and `5.0` are whole, and written so.
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

    /// The request in short: `domain+hits: key=value count/unit +hits; …`.
    fn short(json: &str) -> Option<String> {
        let request = request(json.as_bytes()).ok()?;
        let mut short = format!("{}+{}:", request.domain, request.hits_addend);
        for descriptor in request.descriptors {
            for entry in descriptor.entries {
                short.push_str(&format!(" {}={}", entry.key, entry.value));
            }
            if let Some(limit) = descriptor.limit {
                short.push_str(&format!(" {}/{}", limit.requests_per_unit, limit.unit));
            }
            let sign = if descriptor.is_negative_hits { "-" } else { "+" };
            if let Some(hits) = descriptor.hits_addend {
                short.push_str(&format!(" {sign}{}", hits.value));
            }
            short.push(';');
        }
        Some(short)
    }

    #[test]
    fn what_protobuf_writes_as_json_is_read() {
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
            assert_eq!(short(json).as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn depth_is_bounded_by_what_is_known() {
        for json in ["[".repeat(100_000), r#"{"descriptors":["#.repeat(100_000)] {
            assert!(request(json.as_bytes()).is_err());
        }
    }
}
