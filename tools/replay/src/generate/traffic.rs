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
    /// 100 requests per second of 100 keys for ten minutes from the start of 2026, evenly spaced,
    /// with windows of a minute.
    fn default() -> Self {
        Traffic {
            shape: Shape::Steady,
            rate: Rate { count: 100, per: Micros::from_secs(1) },
            duration: Micros::from_secs(600),
            keys: 100,
            seed: 1,
            start: Timestamp::from_micros(1_767_225_600_000_000),
            window: Micros::from_secs(60),
        }
    }
}

/// Defines [`Shape`] by a table, so that [`Shape::ALL`] cannot lack a shape.
macro_rules! shapes {
    ($($(#[$doc:meta])* $shape:ident = $name:literal,)*) => {
        /// The distribution of requests over time and keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Shape {
            $($(#[$doc])* $shape,)*
        }

        impl Shape {
            /// Every shape.
            pub const ALL: [Shape; [$($name),*].len()] = [$(Shape::$shape),*];

            /// The name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Shape::$shape => $name,)*
                }
            }
        }
    };
}

shapes! {
    /// Evenly spaced; the keys take turns.
    Steady = "steady",
    /// At random times, like many independent clients; keys at random.
    Poisson = "poisson",
    /// All requests of a window at once, at its start; the keys take turns.
    Bursts = "bursts",
    /// At random times; the k-th key makes 1/k of the requests of the first.
    Zipf = "zipf",
    /// At random times with a rate that varies by nine tenths around the average: lowest at the
    /// start, highest half a day later. Traffic shorter than a day is one whole wave. Keys at
    /// random.
    Diurnal = "diurnal",
    /// Only floods across every second edge of a window of the clock, half before and half after
    /// the edge, each half in a tenth of the window. A flood has the requests of two windows, so a
    /// fixed window admits twice its count there. The keys take turns.
    Stampede = "stampede",
}

impl FromStr for Traffic {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let mut words = text.split_whitespace();
        // An empty text is an unknown shape, and a missing value an invalid one.
        let name = words.next().unwrap_or("");
        let shape = Shape::ALL.into_iter().find(|shape| shape.name() == name);
        let shape = shape.ok_or_else(|| TrafficError::UnknownShape(name.to_owned()))?;
        let mut traffic = Traffic { shape, ..Traffic::default() };
        while let Some(name) = words.next() {
            traffic.set(name, words.next().unwrap_or(""))?;
        }
        Ok(traffic)
    }
}

impl Traffic {
    fn set(&mut self, name: &str, value: &str) -> Result<(), TrafficError> {
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
                let rate = rate(value);
                self.rate = rate.ok_or_else(|| invalid("requests in a time, as in 100/s"))?;
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

/// Why a text is not traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message of a variant describes it")]
pub enum TrafficError {
    UnknownShape(String),
    UnknownParameter(String),
    Value { name: String, value: String, expected: &'static str },
}

impl fmt::Display for TrafficError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrafficError::UnknownShape(text) => {
                write!(f, "unknown traffic shape {text:?}; expected one of ")?;
                f.write_str(&Shape::ALL.map(Shape::name).join(", "))
            }
            TrafficError::UnknownParameter(text) => write!(
                f,
                "unknown traffic parameter {text:?}; expected rate, for, keys, window, seed or \
                 start, each followed by its value, as in zipf rate 100/s for 10min"
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

    #[test]
    fn traffic_is_parsed() {
        let (micros, secs) = (Micros::new, Micros::from_secs);
        let rate = |count, per| Rate { count, per: secs(per) };
        // The documented defaults as literals, not `Traffic::default`, so that a change fails.
        let with_defaults = |shape| Traffic {
            shape,
            rate: rate(100, 1),
            duration: secs(600),
            keys: 100,
            seed: 1,
            start: Timestamp::from_micros(1_767_225_600_000_000),
            window: secs(60),
        };
        for (text, expected) in [
            ("steady", with_defaults(Shape::Steady)),
            (
                " zipf  keys 7 seed 2 rate 30/90s window 1500ms for 1h start 2026-01-02T00:00:00.5Z",
                Traffic {
                    shape: Shape::Zipf,
                    rate: rate(30, 90),
                    duration: secs(3_600),
                    keys: 7,
                    seed: 2,
                    start: Timestamp::from_micros(1_767_312_000_500_000),
                    window: micros(1_500_000),
                },
            ),
            (
                "bursts rate 5 for 1d",
                Traffic {
                    rate: rate(5, 1),
                    duration: secs(86_400),
                    ..with_defaults(Shape::Bursts)
                },
            ),
            (
                "stampede rate 5/min window 1w",
                Traffic {
                    rate: rate(5, 60),
                    window: secs(604_800),
                    ..with_defaults(Shape::Stampede)
                },
            ),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn invalid_traffic_is_rejected_with_a_reason() {
        const SHAPE: &str = "; expected one of steady, poisson, bursts, zipf, diurnal, stampede";
        const PARAMETER: &str = "; expected rate, for, keys, window, seed or start, each followed \
                                 by its value, as in zipf rate 100/s for 10min";
        const RATE: &str = " of rate; expected requests in a time, as in 100/s";
        for (text, value, expected) in [
            ("burst", r#"unknown traffic shape "burst""#, SHAPE),
            ("", r#"unknown traffic shape """#, SHAPE),
            ("zipf during 1h", r#"unknown traffic parameter "during""#, PARAMETER),
            ("zipf rate", r#"invalid value """#, RATE),
            ("zipf rate 0/s", r#"invalid value "0/s""#, RATE),
            (
                "zipf for 0s",
                r#"invalid value "0s""#,
                " of for; expected a duration above 0, as in 10min",
            ),
            (
                "zipf keys 0",
                r#"invalid value "0""#,
                " of keys; expected a number from 1 to 16777216",
            ),
            ("zipf seed -1", r#"invalid value "-1""#, " of seed; expected a whole number"),
            (
                "zipf start now",
                r#"invalid value "now""#,
                " of start; expected seconds since 1970, or RFC 3339",
            ),
        ] {
            let error = text.parse::<Traffic>().unwrap_err().to_string();
            assert_eq!(error, format!("{value}{expected}"), "{text}");
        }
    }
}
