//! The report as JSON. Times are seconds, exact to the microsecond; absent values are null. A key is in
//! `key` if it is UTF-8, otherwise in base64 in `key_base64`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::{Limit, Micros, Timestamp};

use super::{
    Amount, Denial, InvalidLine, Outcome, Peaks, Report, Source, Suggestion, Timeline, WorstKey,
};

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ReportJson {
            source: SourceJson::new(&self.source),
            offered: self.offered,
            keys: self.keys,
            timeline: TimelineJson::new(&self.timeline),
            outcomes: self.outcomes.iter().map(OutcomeJson::new).collect(),
            peaks: self.peaks.iter().map(PeaksJson::new).collect(),
        }
        .serialize(serializer)
    }
}

/// Seconds with the necessary decimals, without going through a float.
#[derive(Clone, Copy, Debug)]
struct Seconds(Micros);

impl From<Micros> for Seconds {
    fn from(duration: Micros) -> Self {
        Seconds(duration)
    }
}

impl From<Timestamp> for Seconds {
    fn from(time: Timestamp) -> Self {
        Seconds(Micros::new(time.as_micros()))
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[derive(Debug, Serialize)]
struct ReportJson<'a> {
    source: SourceJson<'a>,
    offered: Amount,
    keys: u64,
    timeline: TimelineJson<'a>,
    outcomes: Vec<OutcomeJson<'a>>,
    peaks: Vec<PeaksJson<'a>>,
}

#[derive(Debug, Serialize)]
struct SourceJson<'a> {
    command: Option<&'a str>,
    names: &'a [String],
    format: Option<&'static str>,
    lines: u64,
    broken: u64,
    broken_samples: Vec<InvalidLineJson<'a>>,
    keyless: u64,
    unruled: u64,
    late: u64,
    spread: bool,
    interrupted: bool,
    failed: Option<&'a str>,
    first: Option<Seconds>,
    last: Option<Seconds>,
}

impl<'a> SourceJson<'a> {
    fn new(value: &'a Source) -> Self {
        SourceJson {
            command: value.command.as_deref(),
            names: &value.names,
            format: value.format,
            lines: value.lines,
            broken: value.invalid,
            broken_samples: value.invalid_samples.iter().map(InvalidLineJson::new).collect(),
            keyless: value.keyless,
            unruled: value.unruled,
            late: value.late,
            spread: value.spread,
            interrupted: value.interrupted,
            failed: value.failed.as_deref(),
            first: value.span.map(|(first, _)| first.into()),
            last: value.span.map(|(_, last)| last.into()),
        }
    }
}

#[derive(Debug, Serialize)]
struct InvalidLineJson<'a> {
    name: &'a str,
    line: u64,
    text: &'a str,
    reason: &'a str,
}

impl<'a> InvalidLineJson<'a> {
    fn new(value: &'a InvalidLine) -> Self {
        InvalidLineJson {
            name: &value.name,
            line: value.line,
            text: &value.text,
            reason: &value.reason,
        }
    }
}

#[derive(Debug, Serialize)]
struct TimelineJson<'a> {
    start: Seconds,
    width: Seconds,
    costs: &'a [u64],
}

impl<'a> TimelineJson<'a> {
    fn new(value: &'a Timeline) -> Self {
        TimelineJson { start: value.start.into(), width: value.width.into(), costs: &value.costs }
    }
}

#[derive(Debug, Serialize)]
struct OutcomeJson<'a> {
    name: &'a str,
    limits: Vec<String>,
    admitted: Amount,
    denied: Amount,
    keys_denied: u64,
    admitted_over_time: &'a [u64],
    longest_denial: Option<DenialJson<'a>>,
    worst: Vec<WorstJson<'a>>,
    suggestion: Option<SuggestionJson>,
    bytes_per_key: u64,
}

impl<'a> OutcomeJson<'a> {
    fn new(value: &'a Outcome) -> Self {
        OutcomeJson {
            name: &value.name,
            limits: texts(&value.limits),
            admitted: value.admitted,
            denied: value.denied,
            keys_denied: value.keys_denied,
            admitted_over_time: &value.admitted_over_time,
            longest_denial: value.longest_denial.as_ref().map(DenialJson::new),
            worst: value.worst.iter().map(WorstJson::new).collect(),
            suggestion: value.suggestion.as_ref().map(SuggestionJson::new),
            bytes_per_key: value.bytes_per_key,
        }
    }
}

fn texts(limits: &[Limit]) -> Vec<String> {
    limits.iter().map(Limit::to_string).collect()
}

/// A key under the name of its encoding.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum KeyJson<'a> {
    Text { key: &'a str },
    Bytes { key_base64: String },
}

impl<'a> KeyJson<'a> {
    fn new(key: &'a [u8]) -> Self {
        match std::str::from_utf8(key) {
            Ok(key) => KeyJson::Text { key },
            Err(_) => KeyJson::Bytes { key_base64: BASE64_STANDARD.encode(key) },
        }
    }
}

#[derive(Debug, Serialize)]
struct DenialJson<'a> {
    #[serde(flatten)]
    key: KeyJson<'a>,
    start: Seconds,
    length: Seconds,
}

impl<'a> DenialJson<'a> {
    fn new(value: &'a Denial) -> Self {
        DenialJson {
            key: KeyJson::new(&value.key),
            start: value.start.into(),
            length: value.length.into(),
        }
    }
}

#[derive(Debug, Serialize)]
struct WorstJson<'a> {
    #[serde(flatten)]
    key: KeyJson<'a>,
    policy: Option<&'a str>,
    offered: Amount,
    denied: Amount,
    first_denied: Seconds,
    longest_denial: Seconds,
}

impl<'a> WorstJson<'a> {
    fn new(value: &'a WorstKey) -> Self {
        WorstJson {
            key: KeyJson::new(&value.key),
            policy: value.policy.as_deref(),
            offered: value.offered,
            denied: value.denied,
            first_denied: value.first_denied.into(),
            longest_denial: value.longest_denial.into(),
        }
    }
}

#[derive(Debug, Serialize)]
struct SuggestionJson {
    /// As a part of 1; a millionth is formatted like a microsecond.
    share: Seconds,
    limits: Vec<String>,
    keys_denied: u64,
}

impl SuggestionJson {
    fn new(value: &Suggestion) -> Self {
        SuggestionJson {
            share: Seconds(Micros::new(u64::from(value.share_ppm))),
            limits: texts(&value.limits),
            keys_denied: value.keys_denied,
        }
    }
}

#[derive(Debug, Serialize)]
struct PeaksJson<'a> {
    window: Seconds,
    keys_by_cost: &'a [(u64, u64)],
    highest: Option<HighestJson<'a>>,
}

impl<'a> PeaksJson<'a> {
    fn new(value: &'a Peaks) -> Self {
        let highest = value.highest.as_ref();
        PeaksJson {
            window: value.window.into(),
            keys_by_cost: &value.keys_by_cost,
            highest: highest.map(|(cost, key)| HighestJson { cost: *cost, key: KeyJson::new(key) }),
        }
    }
}

#[derive(Debug, Serialize)]
struct HighestJson<'a> {
    cost: u64,
    #[serde(flatten)]
    key: KeyJson<'a>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

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
        let denial = |key: &[u8]| Denial {
            key: key.to_vec(),
            start: Timestamp::from_micros(1_500_000),
            length: Micros::new(250_000),
        };
        for (key, expected) in [
            (&b"a\"\n"[..], json!({"key": "a\"\n", "start": 1.5, "length": 0.25})),
            (b"\xff\0", json!({"key_base64": "/wA=", "start": 1.5, "length": 0.25})),
        ] {
            let text = serde_json::to_string(&DenialJson::new(&denial(key))).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        }
    }
}
