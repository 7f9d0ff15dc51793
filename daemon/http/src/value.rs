//! The value of a parameter in a JSON body or a query, and its conversions. Numbers are parsed as
//! they were sent: none passes through a float.

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use tollgate::{Cost, Id, Micros, parse_duration};

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

    /// A number as it was sent.
    fn literal(&self) -> Cow<'_, str> {
        match self {
            Source::Json(json) => Cow::Borrowed(json),
            Source::Query(query) => String::from_utf8_lossy(query),
        }
    }
}

/// The standard alphabet, with optional padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes in base64.
pub(super) fn to_base64(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

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
                let shown = String::from_utf8_lossy(&query[..query.len().min(64)]);
                format!("{name} is {shown:?}; {remedy}")
            }
        };
        Problem::bad_request(detail).at(self.name).with_value(&self.json())
    }

    pub(super) fn text(&self) -> Result<Cow<'a, str>, Problem> {
        match &self.source {
            Source::Json(json) => json_text(json).map_err(|remedy| self.problem(remedy)),
            Source::Query(query) => match query {
                Cow::Borrowed(bytes) => str::from_utf8(bytes).ok().map(Cow::Borrowed),
                Cow::Owned(bytes) => String::from_utf8(bytes.clone()).ok().map(Cow::Owned),
            }
            .ok_or_else(|| self.problem("write it in UTF-8")),
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

    /// A number of elements.
    pub(super) fn count(&self) -> Result<usize, Problem> {
        let literal = self.source.literal();
        let is_digits = literal.bytes().all(|byte| byte.is_ascii_digit());
        let count = literal.parse().ok().filter(|_| is_digits);
        count.ok_or_else(|| self.problem("write a number in digits, such as 50"))
    }

    pub(super) fn cost(&self) -> Result<Cost, Problem> {
        parse_cost(&self.source.literal()).map_err(|remedy| self.problem(remedy))
    }

    /// Seconds as a number.
    pub(super) fn seconds(&self) -> Result<Micros, Problem> {
        parse_seconds(&self.source.literal()).map_err(|remedy| self.problem(remedy))
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

/// Parses a cost: an integer from 0 to 2^53 − 1, in digits alone. An error is the remedy.
fn parse_cost(literal: &str) -> Result<Cost, &'static str> {
    const LARGE: &str = "the greatest cost is 9007199254740991 (2^53 - 1)";
    if literal.starts_with('"') {
        return Err("write the number without quotes");
    }
    if literal.starts_with('-') {
        return Err("a cost is 0 or more; refund gives back");
    }
    if !literal.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("write an integer from 0 to 9007199254740991, such as 1");
    }
    if !is_digits(literal) {
        return Err("write an integer in digits alone, without a point or an exponent, such as 1");
    }
    literal.parse().ok().and_then(Cost::new).ok_or(LARGE)
}

/// Parses seconds with up to six decimals, such as `1.5`, exactly. An error is the remedy.
fn parse_seconds(literal: &str) -> Result<Micros, &'static str> {
    const LARGE: &str = "that is more than 2^64 microseconds; write a smaller number";
    if literal.starts_with('-') {
        return Err("write seconds that are 0 or more");
    }
    let (whole, decimals) = literal.split_once('.').unwrap_or((literal, "0"));
    if !is_digits(whole) || !is_digits(decimals) {
        return Err("write seconds in digits, with up to six decimals, such as 1.5");
    }
    let decimals = decimals.trim_end_matches('0');
    if decimals.len() > 6 {
        return Err("the resolution is a microsecond; write at most six decimals");
    }
    let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| LARGE)?;
    let whole = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(1_000_000));
    whole.and_then(|whole| whole.checked_add(micros)).map(Micros::new).ok_or(LARGE)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_digits_alone() {
        for (literal, expected) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("9007199254740991", Some(9_007_199_254_740_991)),
            ("9007199254740992", None),
            ("18446744073709551616", None),
            ("-1", None),
            ("-0", None),
            ("1.0", None),
            ("1e3", None),
            ("1E0", None),
            ("\"1\"", None),
            ("true", None),
            ("null", None),
            ("[1]", None),
            ("", None),
        ] {
            assert_eq!(parse_cost(literal).ok().map(Cost::get), expected, "{literal}");
        }
    }

    #[test]
    fn seconds_are_exact_to_the_microsecond() {
        for (literal, expected) in [
            ("0", Some(0)),
            ("1", Some(1_000_000)),
            ("1.5", Some(1_500_000)),
            ("0.000001", Some(1)),
            ("0.1000000000", Some(100_000)),
            ("0.0000001", None),
            ("1763650000.123456", Some(1_763_650_000_123_456)),
            ("18446744073709.551615", Some(u64::MAX)),
            ("18446744073709.551616", None),
            ("18446744073710", None),
            ("1e3", None),
            ("1.", None),
            (".5", None),
            ("-1", None),
            ("\"1\"", None),
        ] {
            assert_eq!(parse_seconds(literal).ok().map(Micros::get), expected, "{literal}");
        }
    }
}
