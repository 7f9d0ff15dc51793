//! A value as it was written, in JSON or in a query, and what it means.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tollgate::{Cost, Id, Micros, parse_duration};

use super::field::Field;
use super::number;
use super::problem::{Problem, quoted};

/// The value of a field, not yet read.
#[derive(Clone, Debug)]
pub(super) enum Written<'a> {
    /// A value of JSON, of which only the syntax is known to be right.
    Json(&'a str),
    /// A value of a query, percent-decoded.
    Query(Cow<'a, [u8]>),
}

/// The standard alphabet, with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl<'a> Written<'a> {
    /// The value as JSON.
    pub(super) fn json(&self) -> Cow<'a, str> {
        match self {
            Written::Json(json) => Cow::Borrowed(json),
            Written::Query(query) => Cow::Owned(quoted(&String::from_utf8_lossy(query))),
        }
    }

    fn problem(&self, field: Field, remedy: &str) -> Problem {
        let name = field.name();
        let detail = match self {
            Written::Json(json) => format!("{name} is {json:.64}; {remedy}"),
            Written::Query(query) => {
                format!(
                    "{name} is {:?}; {remedy}",
                    String::from_utf8_lossy(&query[..query.len().min(64)])
                )
            }
        };
        Problem::bad(detail).of(field).with_value(&self.json())
    }

    pub(super) fn text(&self, field: Field) -> Result<Cow<'a, str>, Problem> {
        match self {
            Written::Json(json) => json_text(json).map_err(|remedy| self.problem(field, remedy)),
            Written::Query(Cow::Borrowed(value)) => std::str::from_utf8(value)
                .map(Cow::Borrowed)
                .map_err(|_| self.problem(field, "write it in UTF-8")),
            Written::Query(Cow::Owned(value)) => String::from_utf8(value.clone())
                .map(Cow::Owned)
                .map_err(|_| self.problem(field, "write it in UTF-8")),
        }
    }

    /// The bytes of a key: of a query any, of JSON those of its text.
    pub(super) fn bytes(self, field: Field) -> Result<Cow<'a, [u8]>, Problem> {
        match self {
            Written::Query(query) => Ok(query),
            Written::Json(_) => Ok(match self.text(field)? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
        }
    }

    pub(super) fn base64(&self, field: Field) -> Result<Vec<u8>, Problem> {
        let text = self.text(field)?;
        let remedy = "write the key's bytes in base64, in the alphabet that has + and /";
        BASE64.decode(&*text).map_err(|_| self.problem(field, remedy))
    }

    pub(super) fn cost(&self, field: Field) -> Result<Cost, Problem> {
        let read = match self {
            Written::Json(json) => number::cost(json),
            Written::Query(query) => number::cost(&String::from_utf8_lossy(query)),
        };
        read.map_err(|remedy| self.problem(field, remedy))
    }

    /// Seconds as a number.
    pub(super) fn seconds(&self, field: Field) -> Result<Micros, Problem> {
        let read = match self {
            Written::Json(json) => number::seconds(json),
            Written::Query(query) => number::seconds(&String::from_utf8_lossy(query)),
        };
        read.map_err(|remedy| self.problem(field, remedy))
    }

    /// Seconds as a number, or a text such as `"30s"`.
    pub(super) fn duration(&self, field: Field) -> Result<Micros, Problem> {
        match self {
            Written::Json(json) if json.starts_with('"') => {
                let text = self.text(field)?;
                parse_duration(&text).map_err(|error| self.problem(field, &error.to_string()))
            }
            _ => self.seconds(field),
        }
    }

    pub(super) fn id(&self, field: Field) -> Result<Id, Problem> {
        let text = self.text(field)?;
        text.parse().map_err(|_| self.problem(field, "an id is 32 hexadecimal digits"))
    }
}

/// The text of a JSON string, borrowed where nothing in it is escaped.
fn json_text(json: &str) -> Result<Cow<'_, str>, &'static str> {
    match json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        None => Err("write a text in quotes"),
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        Some(_) => serde_json::from_str(json)
            .map(Cow::Owned)
            .map_err(|_| "an escape in it does not stand for a character; write it in UTF-8"),
    }
}
