//! Overrides as JSON Lines.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use super::{Bytes, OverridesFileError, Rows};

/// A line.
#[derive(Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "an object such as {\"key\":\"vip\",\"limits\":\"100/s\"}"
)]
struct Row<'a> {
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    limits: Limits<'a>,
}

/// Limits, joined by `;`.
struct Limits<'a>(Cow<'a, str>);

pub(super) fn read(file: &mut Bytes, rows: &mut Rows) {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match file.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => match row(&line) {
                Ok(value) => rows.add(number, &value.key, &value.limits.0),
                Err(error) => rows.errors.push(error.at_line(number)),
            },
            Err(error) => return rows.errors.push(OverridesFileError::unreadable(&error)),
        }
        if rows.is_over() {
            return;
        }
    }
}

fn row(line: &[u8]) -> Result<Row<'_>, OverridesFileError> {
    serde_json::from_slice(line).map_err(|error| {
        // Column 0 means unknown.
        let column = u64::try_from(error.column()).ok().filter(|column| *column > 0);
        let mut message = error.to_string();
        // The position is printed in front of the message.
        message.truncate(message.rfind(" at line ").unwrap_or(message.len()));
        let value = String::from_utf8_lossy(line.trim_ascii());
        OverridesFileError { column, ..OverridesFileError::new(message).with_value(&value) }
    })
}

impl<'a, 'de: 'a> Deserialize<'de> for Limits<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LimitsVisitor)
    }
}

struct LimitsVisitor;

impl<'a> Visitor<'a> for LimitsVisitor {
    type Value = Limits<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("limits in quotes, such as \"100/s\" or [\"100/s\", \"1000/h\"]")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Limits(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Limits(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(text) = list.next_element::<Cow<'_, str>>()? {
            if !joined.is_empty() {
                joined.push_str("; ");
            }
            joined.push_str(&text);
        }
        Ok(Limits(Cow::Owned(joined)))
    }
}
