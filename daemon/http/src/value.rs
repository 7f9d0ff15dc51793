//! The value of a parameter in a JSON body or a query, and its conversions.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tollgate::{Cost, Id, Micros, parse_duration};

use super::number;
use super::problem::{Problem, quoted};

/// The value of a parameter.
#[derive(Clone, Debug)]
pub(super) struct Value<'a> {
    /// The parameter's name.
    pub(super) name: &'static str,
    pub(super) source: Source<'a>,
}

/// The text of a value.
#[derive(Clone, Debug)]
pub(super) enum Source<'a> {
    /// JSON, of which only the syntax was checked.
    Json(&'a str),
    /// A value of a query, percent-decoded.
    Query(Cow<'a, [u8]>),
}

impl<'a> Source<'a> {
    /// The value as JSON.
    pub(super) fn json(&self) -> Cow<'a, str> {
        match self {
            Source::Json(json) => Cow::Borrowed(json),
            Source::Query(query) => Cow::Owned(quoted(&String::from_utf8_lossy(query))),
        }
    }
}

/// The standard alphabet, with optional padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl<'a> Value<'a> {
    /// The value as JSON.
    pub(super) fn json(&self) -> Cow<'a, str> {
        self.source.json()
    }

    fn problem(&self, remedy: &str) -> Problem {
        let name = self.name;
        let detail = match &self.source {
            Source::Json(json) => format!("{name} is {json:.64}; {remedy}"),
            Source::Query(query) => {
                format!(
                    "{name} is {:?}; {remedy}",
                    String::from_utf8_lossy(&query[..query.len().min(64)])
                )
            }
        };
        Problem::bad_request(detail).at(self.name).with_value(&self.json())
    }

    pub(super) fn text(&self) -> Result<Cow<'a, str>, Problem> {
        match &self.source {
            Source::Json(json) => json_text(json).map_err(|remedy| self.problem(remedy)),
            Source::Query(Cow::Borrowed(value)) => std::str::from_utf8(value)
                .map(Cow::Borrowed)
                .map_err(|_| self.problem("write it in UTF-8")),
            Source::Query(Cow::Owned(value)) => String::from_utf8(value.clone())
                .map(Cow::Owned)
                .map_err(|_| self.problem("write it in UTF-8")),
        }
    }

    /// The bytes of a key: any bytes in a query, those of the string in JSON.
    pub(super) fn bytes(&self) -> Result<Cow<'a, [u8]>, Problem> {
        match &self.source {
            Source::Query(query) => Ok(query.clone()),
            Source::Json(_) => Ok(match self.text()? {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            }),
        }
    }

    pub(super) fn base64(&self) -> Result<Vec<u8>, Problem> {
        let text = self.text()?;
        let remedy = "write the key's bytes in the standard base64 alphabet, with + and /";
        BASE64.decode(&*text).map_err(|_| self.problem(remedy))
    }

    pub(super) fn cost(&self) -> Result<Cost, Problem> {
        let parsed = match &self.source {
            Source::Json(json) => number::cost(json),
            Source::Query(query) => number::cost(&String::from_utf8_lossy(query)),
        };
        parsed.map_err(|remedy| self.problem(remedy))
    }

    /// Seconds as a number.
    pub(super) fn seconds(&self) -> Result<Micros, Problem> {
        let parsed = match &self.source {
            Source::Json(json) => number::seconds(json),
            Source::Query(query) => number::seconds(&String::from_utf8_lossy(query)),
        };
        parsed.map_err(|remedy| self.problem(remedy))
    }

    /// Seconds as a number, or a string such as `"30s"`.
    pub(super) fn duration(&self) -> Result<Micros, Problem> {
        match &self.source {
            Source::Json(json) if json.starts_with('"') => {
                let text = self.text()?;
                parse_duration(&text).map_err(|error| self.problem(&error.to_string()))
            }
            _ => self.seconds(),
        }
    }

    pub(super) fn id(&self) -> Result<Id, Problem> {
        let text = self.text()?;
        text.parse().map_err(|_| self.problem("an id is 32 hexadecimal digits"))
    }
}

/// The text of a JSON string, borrowed unless it has escapes.
fn json_text(json: &str) -> Result<Cow<'_, str>, &'static str> {
    match json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        None => Err("write a string in quotes"),
        Some(plain) if !plain.contains('\\') => Ok(Cow::Borrowed(plain)),
        Some(_) => serde_json::from_str(json)
            .map(Cow::Owned)
            .map_err(|_| "it has an invalid escape; write the character in UTF-8"),
    }
}
