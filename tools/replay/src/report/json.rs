//! A report as JSON. Times are seconds, exact to the microsecond; what is absent is null; a key is
//! a text as `key`, or where it is none in base64 as `key_base64`.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use tollgate::{Limit, Micros, Timestamp};

use super::{
    Amount, BrokenSample, Denial, Outcome, Peaks, Report, Source, Suggestion, Timeline, WorstKey,
};

impl Serialize for Report {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ReportJson {
            source: SourceJson::of(&self.source),
            offered: self.offered,
            keys: self.keys,
            timeline: TimelineJson::of(&self.timeline),
            outcomes: self.outcomes.iter().map(OutcomeJson::of).collect(),
            peaks: self.peaks.iter().map(PeaksJson::of).collect(),
        }
        .serialize(serializer)
    }
}

/// Seconds with as many decimals as it takes; no float is between.
#[derive(Clone, Copy, Debug)]
struct Seconds(Micros);

impl From<Micros> for Seconds {
    fn from(it: Micros) -> Self {
        Seconds(it)
    }
}

impl From<Timestamp> for Seconds {
    fn from(it: Timestamp) -> Self {
        Seconds(Micros::new(it.as_micros()))
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
    broken_samples: Vec<BrokenJson<'a>>,
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
    fn of(it: &'a Source) -> Self {
        SourceJson {
            command: it.command.as_deref(),
            names: &it.names,
            format: it.format,
            lines: it.lines,
            broken: it.broken,
            broken_samples: it.broken_samples.iter().map(BrokenJson::of).collect(),
            keyless: it.keyless,
            unruled: it.unruled,
            late: it.late,
            spread: it.spread,
            interrupted: it.interrupted,
            failed: it.failed.as_deref(),
            first: it.span.map(|(first, _)| first.into()),
            last: it.span.map(|(_, last)| last.into()),
        }
    }
}

#[derive(Debug, Serialize)]
struct BrokenJson<'a> {
    name: &'a str,
    line: u64,
    text: &'a str,
    reason: &'a str,
}

impl<'a> BrokenJson<'a> {
    fn of(it: &'a BrokenSample) -> Self {
        BrokenJson { name: &it.name, line: it.line, text: &it.text, reason: &it.reason }
    }
}

#[derive(Debug, Serialize)]
struct TimelineJson<'a> {
    start: Seconds,
    width: Seconds,
    costs: &'a [u64],
}

impl<'a> TimelineJson<'a> {
    fn of(it: &'a Timeline) -> Self {
        TimelineJson { start: it.start.into(), width: it.width.into(), costs: &it.costs }
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
    fn of(it: &'a Outcome) -> Self {
        OutcomeJson {
            name: &it.name,
            limits: texts(&it.limits),
            admitted: it.admitted,
            denied: it.denied,
            keys_denied: it.keys_denied,
            admitted_over_time: &it.admitted_over_time,
            longest_denial: it.longest_denial.as_ref().map(DenialJson::of),
            worst: it.worst.iter().map(WorstJson::of).collect(),
            suggestion: it.suggestion.as_ref().map(SuggestionJson::of),
            bytes_per_key: it.bytes_per_key,
        }
    }
}

fn texts(limits: &[Limit]) -> Vec<String> {
    limits.iter().map(Limit::to_string).collect()
}

/// A key under the name that says how it is written.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum KeyJson<'a> {
    Text { key: &'a str },
    Bytes { key_base64: String },
}

impl<'a> KeyJson<'a> {
    fn of(key: &'a [u8]) -> Self {
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
    fn of(it: &'a Denial) -> Self {
        DenialJson { key: KeyJson::of(&it.key), start: it.start.into(), length: it.length.into() }
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
    fn of(it: &'a WorstKey) -> Self {
        WorstJson {
            key: KeyJson::of(&it.key),
            policy: it.policy.as_deref(),
            offered: it.offered,
            denied: it.denied,
            first_denied: it.first_denied.into(),
            longest_denial: it.longest_denial.into(),
        }
    }
}

#[derive(Debug, Serialize)]
struct SuggestionJson {
    /// Of 1; a millionth of a share is written as a microsecond is of a second.
    share: Seconds,
    limits: Vec<String>,
    keys_denied: u64,
}

impl SuggestionJson {
    fn of(it: &Suggestion) -> Self {
        SuggestionJson {
            share: Seconds(Micros::new(u64::from(it.share_ppm))),
            limits: texts(&it.limits),
            keys_denied: it.keys_denied,
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
    fn of(it: &'a Peaks) -> Self {
        let highest = it.highest.as_ref();
        PeaksJson {
            window: it.window.into(),
            keys_by_cost: &it.keys_by_cost,
            highest: highest.map(|(cost, key)| HighestJson { cost: *cost, key: KeyJson::of(key) }),
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
    fn times_are_written_exactly() {
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
    fn a_key_is_text_or_says_that_it_is_base64() {
        let denial = |key: &[u8]| Denial {
            key: key.to_vec(),
            start: Timestamp::from_micros(1_500_000),
            length: Micros::new(250_000),
        };
        for (key, expected) in [
            (&b"a\"\n"[..], json!({"key": "a\"\n", "start": 1.5, "length": 0.25})),
            (b"\xff\0", json!({"key_base64": "/wA=", "start": 1.5, "length": 0.25})),
        ] {
            let text = serde_json::to_string(&DenialJson::of(&denial(key))).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), expected, "{text}");
        }
    }
}
