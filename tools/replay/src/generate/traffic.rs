//! The parameters of synthetic traffic, and their text form.

use std::fmt;
use std::str::FromStr;

use tollgate::{Micros, Timestamp, parse_duration};

use crate::log::{TimeUnit, parse_time};

/// The parameters of synthetic traffic.
///
/// As text: a shape, followed by the parameters that differ from the [default](Traffic::default):
/// `zipf rate 1000/s for 1h keys 1000000 window 1min seed 7 start 2026-01-01T00:00:00Z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The distribution of requests over time and keys.
    pub shape: Shape,
    /// The average rate.
    pub rate: Rate,
    /// The duration.
    pub duration: Micros,
    /// The number of keys, at most [`MAX_KEYS`].
    pub keys: u32,
    /// The seed of random choices.
    pub seed: u64,
    /// The start.
    pub start: Timestamp,
    /// The time between bursts, or the window whose edges are flooded.
    pub window: Micros,
}

/// The maximum number of keys: the addresses in `10.0.0.0/8`.
pub const MAX_KEYS: u32 = 1 << 24;

/// A number of requests in a time, on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The number of requests.
    pub count: u64,
    /// The time.
    pub per: Micros,
}

impl Default for Traffic {
    /// 100 requests per second of 100 keys for ten minutes from the start of 2026, evenly spaced, with
    /// windows of a minute.
    fn default() -> Self {
        Traffic {
            shape: Steady,
            rate: Rate { count: 100, per: Micros::from_secs(1) },
            duration: Micros::from_secs(600),
            keys: 100,
            seed: 1,
            start: Timestamp::from_micros(1_767_225_600_000_000),
            window: Micros::from_secs(60),
        }
    }
}

/// The distribution of requests over time and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Evenly spaced; the keys take turns.
    Steady,
    /// At random times, like many independent clients; keys at random.
    Poisson,
    /// All requests of a window at once, at its start; the keys take turns.
    Bursts,
    /// At random times; the k-th key makes 1/k of the requests of the first.
    Zipf,
    /// At random times with a rate that varies by nine tenths around the average: lowest at the start,
    /// highest half a day later. Traffic shorter than a day is one whole wave. Keys at random.
    Diurnal,
    /// Only floods across every second edge of a window of the clock, half before and half after the edge,
    /// each half in a tenth of the window. A flood has the requests of two windows, so a fixed window
    /// admits twice its count there. The keys take turns.
    Stampede,
}

use Shape::{Bursts, Diurnal, Poisson, Stampede, Steady, Zipf};

const NAMES: [(Shape, &str); 6] = [
    (Steady, "steady"),
    (Poisson, "poisson"),
    (Bursts, "bursts"),
    (Zipf, "zipf"),
    (Diurnal, "diurnal"),
    (Stampede, "stampede"),
];

impl Shape {
    /// All shapes.
    pub fn all() -> impl Iterator<Item = Shape> {
        NAMES.iter().map(|name| name.0)
    }

    /// The name.
    #[must_use]
    #[expect(clippy::expect_used, reason = "`NAMES` lists every shape")]
    pub fn name(self) -> &'static str {
        let (_, name) =
            NAMES.iter().find(|(shape, _)| *shape == self).expect("`NAMES` lists every shape");
        name
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Shape {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(shape, _)| *shape).ok_or_else(|| TrafficError::UnknownShape(text.to_owned()))
    }
}

impl FromStr for Traffic {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let mut words = text.split_whitespace();
        // An empty text is an unknown shape, and a missing value an invalid one.
        let shape = words.next().unwrap_or("").parse()?;
        let mut traffic = Traffic { shape, ..Traffic::default() };
        while let Some(name) = words.next() {
            traffic.set(name, words.next().unwrap_or(""))?;
        }
        Ok(traffic)
    }
}

impl Traffic {
    /// Sets the parameter `rate`, `for`, `keys`, `window`, `seed` or `start`.
    ///
    /// # Errors
    /// The parameter is unknown, or the value is invalid for it.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), TrafficError> {
        let invalid = |expected| {
            let (name, value) = (name.to_owned(), value.to_owned());
            TrafficError::Value { name, value, expected }
        };
        let duration = |text| {
            let parsed = parse_duration(text).ok().filter(|duration| *duration > Micros::ZERO);
            parsed.ok_or_else(|| invalid("a duration above 0, as in 10min"))
        };
        match name {
            "rate" => {
                let rate = rate(value).ok_or_else(|| invalid("requests in a time, as in 100/s"))?;
                self.rate = rate;
            }
            "for" => self.duration = duration(value)?,
            "window" => self.window = duration(value)?,
            "keys" => {
                let keys = value.parse().ok().filter(|value| (1..=MAX_KEYS).contains(value));
                self.keys = keys.ok_or_else(|| invalid("a number from 1 to 16777216"))?;
            }
            "seed" => self.seed = value.parse().map_err(|_| invalid("a whole number"))?,
            "start" => {
                let start = parse_time(value.as_bytes(), TimeUnit::Seconds);
                self.start = start.map_err(|_| invalid("seconds since 1970, or RFC 3339"))?;
            }
            _ => return Err(TrafficError::UnknownParameter(name.to_owned())),
        }
        Ok(())
    }
}

/// `100/s`, `30/5min`, or `100`, which is per second.
fn rate(text: &str) -> Option<Rate> {
    let (count, per) = text.split_once('/').unwrap_or((text, "s"));
    let per = match per.starts_with(|c: char| c.is_ascii_digit()) {
        true => parse_duration(per).ok()?,
        false => parse_duration(&format!("1{per}")).ok()?,
    };
    let count = count.parse().ok()?;
    (count > 0 && per > Micros::ZERO).then_some(Rate { count, per })
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traffic { shape, rate, duration, keys, seed, start, window } = self;
        write!(f, "{shape} rate {rate} for {} keys {keys} ", Short(*duration))?;
        write!(f, "window {} seed {seed} start {start}", Short(*window))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let per = Short(self.per).to_string();
        // `1s` is shortened to `s`; `10s` remains.
        let one = per.strip_prefix('1').filter(|per| per.starts_with(char::is_alphabetic));
        write!(f, "{}/{}", self.count, one.unwrap_or(&per))
    }
}

/// A duration in the longest unit that divides it.
struct Short(Micros);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "min"),
            (1_000_000, "s"),
            (1_000, "ms"),
        ];
        let us = self.0.get();
        let (unit, name) = UNITS
            .into_iter()
            .find(|(unit, _)| us > 0 && us.is_multiple_of(*unit))
            .unwrap_or((1, "us"));
        write!(f, "{}{name}", us / unit)
    }
}

/// Why a text is not traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrafficError {
    /// The shape is unknown.
    UnknownShape(String),
    /// The parameter is unknown.
    UnknownParameter(String),
    /// The value of a parameter is invalid.
    Value {
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// The expected form.
        expected: &'static str,
    },
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrafficError::UnknownShape(text) => {
                write!(f, "unknown traffic shape {text:?}; expected one of ")?;
                let names: Vec<&str> = Shape::all().map(Shape::name).collect();
                f.write_str(&names.join(", "))
            }
            TrafficError::UnknownParameter(text) => write!(
                f,
                "unknown traffic parameter {text:?}; expected rate, for, keys, window, seed or start, \
                 each followed by its value, as in zipf rate 100/s for 10min"
            ),
            TrafficError::Value { name, value, expected } => {
                write!(f, "invalid value {value:?} of {name}; expected {expected}")
            }
        }
    }
}

impl std::error::Error for TrafficError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let traffic: Traffic = text.parse().unwrap();
        assert_eq!(traffic.to_string(), expected);
        assert_eq!(expected.parse(), Ok(traffic));
    }

    #[test]
    fn traffic_round_trips_through_text() {
        check("steady", "steady rate 100/s for 10min keys 100 window 1min seed 1 start 1767225600");
        check(
            " zipf  keys 7 seed 2 rate 30/90s window 1500ms for 1h start 2026-01-02T00:00:00.5Z",
            "zipf rate 30/90s for 1h keys 7 window 1500ms seed 2 start 1767312000.5",
        );
        check(
            "bursts rate 5 for 1d",
            "bursts rate 5/s for 1d keys 100 window 1min seed 1 start 1767225600",
        );
        check(
            "stampede rate 5/min window 1w",
            "stampede rate 5/min for 10min keys 100 window 7d seed 1 start 1767225600",
        );
    }

    #[test]
    fn invalid_traffic_is_rejected_with_a_reason() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Traffic>().unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        };
        check(
            "burst",
            r#"unknown traffic shape "burst"; expected one of steady, poisson, bursts, zipf, diurnal, stampede"#,
        );
        check(
            "",
            r#"unknown traffic shape ""; expected one of steady, poisson, bursts, zipf, diurnal, stampede"#,
        );
        check(
            "zipf during 1h",
            r#"unknown traffic parameter "during"; expected rate, for, keys, window, seed or start, each followed by its value, as in zipf rate 100/s for 10min"#,
        );
        check("zipf rate", r#"invalid value "" of rate; expected requests in a time, as in 100/s"#);
        check(
            "zipf rate 0/s",
            r#"invalid value "0/s" of rate; expected requests in a time, as in 100/s"#,
        );
        check(
            "zipf for 0s",
            r#"invalid value "0s" of for; expected a duration above 0, as in 10min"#,
        );
        check("zipf keys 0", r#"invalid value "0" of keys; expected a number from 1 to 16777216"#);
        check("zipf seed -1", r#"invalid value "-1" of seed; expected a whole number"#);
        check(
            "zipf start now",
            r#"invalid value "now" of start; expected seconds since 1970, or RFC 3339"#,
        );
    }
}
