//! The JSON form of a report. Times are seconds, exact to the microsecond; absent values are null.
//! A key is in `key` if it is UTF-8, otherwise in base64 in `key_base64`.

use std::fmt::Display;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::{Limit, Micros, Timestamp};

/// Seconds with the necessary decimals, without going through a float.
struct Seconds<T>(T);

impl<T: Display> Serialize for Seconds<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

pub(super) fn seconds<S: Serializer>(time: impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    Seconds(time).serialize(serializer)
}

/// Millionths as a part of 1; a millionth is formatted like a microsecond.
pub(super) fn share<S: Serializer>(ppm: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    Seconds(Micros::new(u64::from(*ppm))).serialize(serializer)
}

pub(super) fn span<S: Serializer>(
    span: &Option<(Timestamp, Timestamp)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(2))?;
    map.serialize_entry("first", &span.map(|(first, _)| Seconds(first)))?;
    map.serialize_entry("last", &span.map(|(_, last)| Seconds(last)))?;
    map.end()
}

pub(super) fn limits<S: Serializer>(limits: &[Limit], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(limits.iter().map(Limit::to_string))
}

/// A key under the name of its encoding.
pub(super) fn key<S: Serializer>(key: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    match std::str::from_utf8(key) {
        Ok(text) => map.serialize_entry("key", text)?,
        Err(_) => map.serialize_entry("key_base64", &BASE64_STANDARD.encode(key))?,
    }
    map.end()
}

pub(super) fn highest<S: Serializer>(
    highest: &Option<(u64, Vec<u8>)>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Highest<'a> {
        cost: u64,
        #[serde(flatten, serialize_with = "key")]
        key: &'a [u8],
    }
    highest.as_ref().map(|(cost, key)| Highest { cost: *cost, key }).serialize(serializer)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::report::{Denial, Report};

    #[test]
    fn times_are_exact() {
        for (micros, expected) in [
            (0, "0"),
            (1, "0.000001"),
            (60_000_000, "60"),
            (1_763_650_000_123_456, "1763650000.123456"),
            (u64::MAX, "18446744073709.551615"),
        ] {
            assert_eq!(serde_json::to_string(&Seconds(Micros::new(micros))).unwrap(), expected);
        }
    }

    #[test]
    fn an_empty_report_has_every_field() {
        let text = serde_json::to_string(&Report::default()).unwrap();
        let value: Value = serde_json::from_str(&text).unwrap();
        let nothing = json!({"requests": 0, "cost": 0});
        let expected = json!({
            "source": {
                "command": null, "names": [], "format": null, "lines": 0, "broken": 0,
                "broken_samples": [], "keyless": 0, "unruled": 0, "late": 0, "spread": false,
                "interrupted": false, "failed": null, "first": null, "last": null
            },
            "offered": nothing, "keys": 0,
            "timeline": {"start": 0, "width": 0, "costs": []},
            "outcomes": [], "peaks": []
        });
        assert_eq!(value, expected);
    }

    #[test]
    fn a_key_is_text_or_base64() {
        for (key, expected) in [
            (&b"a\"\n"[..], json!({"key": "a\"\n", "start": 1.5, "length": 0.25})),
            (b"\xff\0", json!({"key_base64": "/wA=", "start": 1.5, "length": 0.25})),
        ] {
            let denial = Denial {
                key: key.to_vec(),
                start: Timestamp::from_micros(1_500_000),
                length: Micros::new(250_000),
            };
            let text = serde_json::to_string(&denial).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        }
    }
}
