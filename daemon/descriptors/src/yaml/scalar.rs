//! YAML 1.1 scalars.

use std::fmt;

/// A scalar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Nothing,
    Bool(bool),
    /// An integer that fits in 64 bits with a sign.
    Integer(i64),
    /// A larger integer.
    Unsigned(u64),
    Float(f64),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// The value of a text; a quoted text is a string.
    pub(crate) fn parse(text: &'a str, quoted: bool) -> Self {
        if quoted { Scalar::Text(text) } else { Scalar::plain(text) }
    }

    fn plain(text: &'a str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Scalar::Nothing,
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                return Scalar::Bool(true);
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off"
            | "OFF" => return Scalar::Bool(false),
            ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
                return Scalar::Float(f64::INFINITY);
            }
            "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
            _ => {}
        }
        if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
            return Scalar::Text(text);
        }
        let digits = text.replace('_', "");
        let (sign, magnitude) = match digits.strip_prefix(['+', '-']) {
            Some(rest) => (digits.starts_with('-'), rest),
            None => (false, &*digits),
        };
        let number = integer(sign, magnitude).or_else(|| float(&digits, magnitude));
        number.unwrap_or(Scalar::Text(text))
    }

    /// The YAML tag of the type.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Scalar::Nothing => "!!null",
            Scalar::Bool(_) => "!!bool",
            Scalar::Integer(_) | Scalar::Unsigned(_) => "!!int",
            Scalar::Float(_) => "!!float",
            Scalar::Text(_) => "!!str",
        }
    }
}

/// Parses an integer with an optional base: `0x`, `0o`, `0b`, or `0` for octal.
fn integer(is_negative: bool, magnitude: &str) -> Option<Scalar<'static>> {
    let lower = magnitude.to_ascii_lowercase();
    let (base, digits) = match &*lower {
        other if other.starts_with("0x") => (16, lower.strip_prefix("0x")?),
        other if other.starts_with("0o") => (8, lower.strip_prefix("0o")?),
        other if other.starts_with("0b") => (2, lower.strip_prefix("0b")?),
        other if other.len() > 1 && other.starts_with('0') => (8, lower.strip_prefix('0')?),
        lower => (10, lower),
    };
    if !digits.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let number = u64::from_str_radix(digits, base).ok()?;
    match (i64::try_from(number), is_negative) {
        (Ok(number), false) => Some(Scalar::Integer(number)),
        (Err(_), false) => Some(Scalar::Unsigned(number)),
        (_, true) => 0_i64.checked_sub_unsigned(number).map(Scalar::Integer),
    }
}

/// Parses a number with a decimal point or an exponent.
fn float(digits: &str, magnitude: &str) -> Option<Scalar<'static>> {
    let begins = magnitude.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
    let has_only_decimal_bytes = magnitude
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let number = digits
        .parse::<f64>()
        .ok()
        .filter(|number| begins && has_only_decimal_bytes && number.is_finite());
    number.map(Scalar::Float)
}

/// The format of envoyproxy/ratelimit.
impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Nothing => f.write_str("<nil>"),
            Scalar::Bool(flag) => flag.fmt(f),
            Scalar::Integer(number) => number.fmt(f),
            Scalar::Unsigned(number) => number.fmt(f),
            Scalar::Float(float) if float.is_nan() => f.write_str("NaN"),
            Scalar::Float(float) if float.is_infinite() => {
                f.write_str(if float.is_sign_negative() { "-Inf" } else { "+Inf" })
            }
            Scalar::Float(float) => f.write_str(&float_text(*float)),
            Scalar::Text(text) => f.write_str(text),
        }
    }
}

/// The shortest text of a number, with a two-digit exponent below 10^-4 and from 10^6.
fn float_text(number: f64) -> String {
    let text = format!("{number:e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}
