//! Scalar types.

use std::path::PathBuf;
use std::time::Duration;

use http::HeaderName;
use tollgate::{Policy, parse_duration};
use tollgate_rules::{HostPattern, MethodName, Networks, PathPattern, Template};

use super::format::Format;
use crate::address::Address;
use crate::read::track::TimelineSpec;

/// The type of a scalar.
#[derive(Debug)]
pub(crate) enum Scalar {
    /// Any text.
    Text,
    /// Text in a format of its own.
    Format(&'static Format),
    /// A duration.
    Duration { min: Duration },
    /// A number of bytes, such as `64KiB`.
    Bytes { min: u64, max: u64 },
    /// A number.
    Count { min: u64, max: u64 },
    /// `true` or `false`.
    Bool,
    /// One of these words.
    Keyword { words: &'static [&'static str] },
    /// The path of a file or directory.
    Path { what: &'static str },
    /// The address of a listener.
    Address,
}

/// A parsed scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// No value.
    Nothing,
    Text(String),
    /// A URL, which may contain a password.
    Url(String),
    Duration(Duration),
    Number(u64),
    Bool(bool),
    Keyword(&'static str),
    Path(PathBuf),
    Address(Address),
    /// One or more limits.
    Limits(Policy),
    HeaderName(HeaderName),
    Host(HostPattern),
    Method(MethodName),
    Networks(Networks),
    PathPattern(PathPattern),
    /// A SHA-256 digest.
    Sha256([u8; 32]),
    Template(Template),
    Timeline(TimelineSpec),
}

impl Scalar {
    /// Parses a text. The error states the remedy, and may show the text.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            Scalar::Text => Ok(Value::Text(text.to_owned())),
            Scalar::Format(format) => (format.read)(text),
            Scalar::Duration { min } => duration(text, *min).map(Value::Duration),
            Scalar::Bytes { min, max } => bytes(text, *min, *max).map(Value::Number),
            Scalar::Count { min, max } => count(text, *min, *max).map(Value::Number),
            Scalar::Bool => {
                text.parse().map(Value::Bool).map_err(|_| "expected true or false".to_owned())
            }
            Scalar::Keyword { words } => word(text, words).map(Value::Keyword),
            Scalar::Path { what } => match text {
                "" => Err(format!("expected {what}, or null for none")),
                path => Ok(Value::Path(path.into())),
            },
            Scalar::Address => text.parse().map(Value::Address),
        }
    }

    /// Whether messages must not show the text.
    pub(crate) fn hides(&self) -> bool {
        matches!(self, Scalar::Format(format) if format.hides)
    }

    /// An example value, as YAML.
    pub(crate) fn example(&self) -> &'static str {
        match self {
            Scalar::Text => "text",
            Scalar::Format(format) => format.example,
            Scalar::Duration { .. } => "10s",
            Scalar::Bytes { .. } => "64KiB",
            Scalar::Count { .. } => "100",
            Scalar::Bool => "true",
            Scalar::Keyword { words: [first, ..] } => first,
            Scalar::Keyword { words: [] } => unreachable!("a keyword field has keywords"),
            Scalar::Path { .. } => "./file",
            Scalar::Address => "127.0.0.1:8080",
        }
    }
}

fn duration(text: &str, min: Duration) -> Result<Duration, String> {
    let read: Duration = parse_duration(text).map_err(|error| error.to_string())?.into();
    if read < min { Err(format!("expected a duration of at least {min:?}")) } else { Ok(read) }
}

fn count(text: &str, min: u64, max: u64) -> Result<u64, String> {
    match digits(text) {
        Some(number) if (min..=max).contains(&number) => Ok(number),
        _ if max == u64::MAX => Err(format!("expected a number of at least {min}, in digits")),
        Some(number) => {
            let nearest = number.clamp(min, max);
            Err(format!("expected a number from {min} to {max}; the nearest is {nearest}"))
        }
        None => Err(format!("expected a number from {min} to {max}, in digits")),
    }
}

fn bytes(text: &str, min: u64, max: u64) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim() {
        "" | "B" => Some(1),
        "KiB" => Some(1024),
        "MiB" => Some(1024 * 1024),
        "GiB" => Some(1024 * 1024 * 1024),
        _ => None,
    };
    let read = digits(number).zip(scale).and_then(|(digit, scale)| digit.checked_mul(scale));
    let example = if min > 64 * 1024 { "256MiB" } else { "64KiB" };
    read.filter(|x| (min..=max).contains(x))
        .ok_or_else(|| format!("expected a number of bytes from {min} to {max}, such as {example}"))
}

fn word(text: &str, words: &'static [&'static str]) -> Result<&'static str, String> {
    let found = words.iter().find(|word| **word == text).copied();
    found.ok_or_else(|| format!("expected {}", one_of(words)))
}

fn digits(text: &str) -> Option<u64> {
    // `parse` also accepts a plus sign.
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// An enumeration of words: `deny or allow`, `info, debug or trace`.
pub(crate) fn one_of(words: &[impl AsRef<str>]) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            _ if index + 1 == words.len() => " or ",
            _ => ", ",
        });
        text.push_str(word.as_ref());
    }
    text
}
