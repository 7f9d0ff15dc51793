//! Traffic as text.

use std::fmt;
use std::str::FromStr;

use tollgate::{Micros, parse_duration};

use super::{MAX_KEYS, Rate, Shape, Traffic};
use crate::log::{TimeUnit, time_in_text};

impl FromStr for Traffic {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let mut words = text.split_whitespace();
        let shape = words.next().unwrap_or_default().parse()?;
        let mut traffic = Traffic { shape, ..Traffic::default() };
        while let Some(name) = words.next() {
            traffic.set(name, words.next().unwrap_or_default())?;
        }
        Ok(traffic)
    }
}

impl Traffic {
    /// Sets what a word of the text names: `rate`, `for`, `keys`, `window`, `seed` or `start`.
    ///
    /// # Errors
    /// There is no such word, or the value cannot be its.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), TrafficError> {
        let refused = |expected| {
            let (name, value) = (name.to_owned(), value.to_owned());
            TrafficError::Value { name, value, expected }
        };
        let duration = |text| {
            let found = parse_duration(text).ok().filter(|duration| *duration > Micros::ZERO);
            found.ok_or_else(|| refused("a duration above 0, as in 10min"))
        };
        match name {
            "rate" => {
                let rate = rate(value).ok_or_else(|| refused("requests in a time, as in 100/s"))?;
                self.rate = rate;
            }
            "for" => self.duration = duration(value)?,
            "window" => self.window = duration(value)?,
            "keys" => {
                let keys = value.parse().ok().filter(|value| (1..=MAX_KEYS).contains(value));
                self.keys = keys.ok_or_else(|| refused("a number from 1 to 16777216"))?;
            }
            "seed" => self.seed = value.parse().map_err(|_| refused("a whole number"))?,
            "start" => {
                let start = time_in_text(value.as_bytes(), TimeUnit::Seconds);
                self.start = start.map_err(|_| refused("seconds since 1970, or RFC 3339"))?;
            }
            _ => return Err(TrafficError::Word(name.to_owned())),
        }
        Ok(())
    }
}

/// `100/s`, `30/5min`, or `100`, which is for a second.
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
        // `1s` is `s`, and `10s` stays.
        let one = per.strip_prefix('1').filter(|per| per.starts_with(char::is_alphabetic));
        write!(f, "{}/{}", self.count, one.unwrap_or(&per))
    }
}

/// A duration in the longest unit of which it is a whole number.
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

/// Why a text is no traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrafficError {
    /// No shape is called so.
    Shape(String),
    /// Nothing of traffic is called so.
    Word(String),
    /// It cannot have this value.
    Value {
        /// What was to be set.
        name: String,
        /// To what.
        value: String,
        /// What it can be.
        expected: &'static str,
    },
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrafficError::Shape(text) => {
                write!(f, "{text:?} is no shape of traffic; take ")?;
                let names: Vec<&str> = Shape::all().map(Shape::name).collect();
                f.write_str(&names.join(", "))
            }
            TrafficError::Word(text) => write!(
                f,
                "{text:?} says nothing of traffic; take rate, for, keys, window, seed or start, each \
                 with its value, as in zipf rate 100/s for 10min"
            ),
            TrafficError::Value { name, value, expected } => {
                write!(f, "{name} cannot be {value:?}; write {expected}")
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
    fn traffic_is_a_text_and_back() {
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
    fn what_is_no_traffic_is_said_why() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Traffic>().unwrap_err().to_string();
            assert_eq!(error, expected, "{text}");
        };
        check(
            "burst",
            r#""burst" is no shape of traffic; take steady, poisson, bursts, zipf, diurnal, stampede"#,
        );
        check(
            "",
            r#""" is no shape of traffic; take steady, poisson, bursts, zipf, diurnal, stampede"#,
        );
        check(
            "zipf during 1h",
            r#""during" says nothing of traffic; take rate, for, keys, window, seed or start, each with its value, as in zipf rate 100/s for 10min"#,
        );
        check("zipf rate", r#"rate cannot be ""; write requests in a time, as in 100/s"#);
        check("zipf rate 0/s", r#"rate cannot be "0/s"; write requests in a time, as in 100/s"#);
        check("zipf for 0s", r#"for cannot be "0s"; write a duration above 0, as in 10min"#);
        check("zipf keys 0", r#"keys cannot be "0"; write a number from 1 to 16777216"#);
        check("zipf seed -1", r#"seed cannot be "-1"; write a whole number"#);
        check("zipf start now", r#"start cannot be "now"; write seconds since 1970, or RFC 3339"#);
    }
}
