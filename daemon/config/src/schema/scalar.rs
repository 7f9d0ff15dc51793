//! Single values: what a text means where it stands.

use std::path::PathBuf;
use std::time::Duration;

use tollgate::parse_duration;

use super::{Form, one_of};
use crate::address::Address;

/// What a single value may be.
#[derive(Debug)]
pub(crate) enum Scalar {
    /// Any text.
    Text,
    /// A text that something of ours reads.
    Form(&'static Form),
    /// A length of time.
    Duration { least: Duration },
    /// A number of bytes, such as `64KiB`.
    Bytes { least: u64, most: u64 },
    /// A number.
    Count { least: u64, most: u64 },
    /// `true` or `false`.
    Truth,
    /// One of these words; `later` are of a later version.
    Word { words: &'static [&'static str], later: &'static [&'static str] },
    /// The path of a file, or of a directory.
    Path { what: &'static str },
    /// Where to listen.
    Address,
}

/// What a single value was read as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// That there is none.
    Nothing,
    Text(String),
    Duration(Duration),
    Number(u64),
    Truth(bool),
    Word(&'static str),
    Path(PathBuf),
    Address(Address),
}

impl Scalar {
    pub(super) const fn words(words: &'static [&'static str]) -> Self {
        Scalar::Word { words, later: &[] }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The text is not of this kind; the error says what is, and may show the text.
    pub(crate) fn read(&self, text: &str) -> Result<Value, String> {
        match self {
            Scalar::Text => Ok(Value::Text(text.to_owned())),
            Scalar::Form(form) => (form.check)(text).map(|()| Value::Text(text.to_owned())),
            Scalar::Duration { least } => duration(text, *least).map(Value::Duration),
            Scalar::Bytes { least, most } => bytes(text, *least, *most).map(Value::Number),
            Scalar::Count { least, most } => count(text, *least, *most).map(Value::Number),
            Scalar::Truth => {
                text.parse().map(Value::Truth).map_err(|_| "write true or false".to_owned())
            }
            Scalar::Word { words, later } => word(text, words, later).map(Value::Word),
            Scalar::Path { what } => match text {
                "" => Err(format!("write {what}, or null for none")),
                path => Ok(Value::Path(path.into())),
            },
            Scalar::Address => text.parse().map(Value::Address),
        }
    }

    /// Whether a refused text may not be shown, for what it may hold.
    pub(crate) fn hides(&self) -> bool {
        matches!(self, Scalar::Form(form) if form.hides)
    }

    /// An example, as it would be written.
    pub(crate) fn example(&self) -> &'static str {
        match self {
            Scalar::Text => "text",
            Scalar::Form(form) => form.example,
            Scalar::Duration { .. } => "10s",
            Scalar::Bytes { .. } => "64KiB",
            Scalar::Count { .. } => "100",
            Scalar::Truth => "true",
            Scalar::Word { words, .. } => words.first().copied().unwrap_or_default(),
            Scalar::Path { .. } => "./file",
            Scalar::Address => "127.0.0.1:8080",
        }
    }
}

fn duration(text: &str, least: Duration) -> Result<Duration, String> {
    let read: Duration = parse_duration(text).map_err(|error| error.to_string())?.into();
    if read < least { Err(format!("it must be at least {least:?}")) } else { Ok(read) }
}

fn count(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let read = digits(text).filter(|digit| (least..=most).contains(digit));
    read.ok_or_else(|| match most {
        u64::MAX => format!("write a number of at least {least}, in digits"),
        most => format!("write a number from {least} to {most}, in digits"),
    })
}

fn bytes(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim() {
        "" | "B" => Some(1),
        "KiB" => Some(1024),
        "MiB" => Some(1024 * 1024),
        _ => None,
    };
    let read = digits(number).zip(scale).and_then(|(digit, scale)| digit.checked_mul(scale));
    read.filter(|x| (least..=most).contains(x))
        .ok_or_else(|| format!("write a number of bytes from {least} to {most}, such as 64KiB"))
}

fn word(
    text: &str,
    words: &'static [&'static str],
    later: &[&str],
) -> Result<&'static str, String> {
    let found = words.iter().find(|word| **word == text).copied();
    found.ok_or_else(|| match later.contains(&text) {
        true => format!("this version does not have it; write {}", one_of(words)),
        false => format!("write {}", one_of(words)),
    })
}

fn digits(text: &str) -> Option<u64> {
    // `parse` takes a plus sign too.
    text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
}
