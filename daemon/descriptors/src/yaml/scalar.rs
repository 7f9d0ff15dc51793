//! What a plain text means to the reference's reader of YAML 1.1.

use std::fmt;

/// A value that is no list and has no fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Nothing,
    Truth(bool),
    /// A whole number of 64 bits with a sign.
    Whole(i64),
    /// A greater one.
    Great(u64),
    Float(f64),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    /// What a text stands for; one in quotes stands for itself.
    pub(crate) fn of(text: &'a str, quoted: bool) -> Self {
        if quoted { Scalar::Text(text) } else { Scalar::plain(text) }
    }

    fn plain(text: &'a str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => return Scalar::Nothing,
            "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
                return Scalar::Truth(true);
            }
            "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off"
            | "OFF" => return Scalar::Truth(false),
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
        let number = whole(sign, magnitude).or_else(|| float(&digits, magnitude));
        number.unwrap_or(Scalar::Text(text))
    }

    /// How the reader calls its kind.
    pub(crate) fn tag(&self) -> &'static str {
        match self {
            Scalar::Nothing => "!!null",
            Scalar::Truth(_) => "!!bool",
            Scalar::Whole(_) | Scalar::Great(_) => "!!int",
            Scalar::Float(_) => "!!float",
            Scalar::Text(_) => "!!str",
        }
    }
}

/// Digits with or without a base in front: `0x`, `0o`, `0b`, and `0` for eight.
fn whole(is_negative: bool, magnitude: &str) -> Option<Scalar<'static>> {
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
        (Ok(number), false) => Some(Scalar::Whole(number)),
        (Err(_), false) => Some(Scalar::Great(number)),
        (_, true) => 0_i64.checked_sub_unsigned(number).map(Scalar::Whole),
    }
}

/// Digits with a point or an exponent.
fn float(digits: &str, magnitude: &str) -> Option<Scalar<'static>> {
    let begins = magnitude.trim_start_matches('.').starts_with(|c: char| c.is_ascii_digit());
    let is_written_so = magnitude
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    let number =
        digits.parse::<f64>().ok().filter(|digit| begins && is_written_so && digit.is_finite());
    number.map(Scalar::Float)
}

/// As the reference prints it.
impl fmt::Display for Scalar<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Nothing => f.write_str("<nil>"),
            Scalar::Truth(truth) => truth.fmt(f),
            Scalar::Whole(whole) => whole.fmt(f),
            Scalar::Great(great) => great.fmt(f),
            Scalar::Float(float) if float.is_nan() => f.write_str("NaN"),
            Scalar::Float(float) if float.is_infinite() => {
                f.write_str(if float.is_sign_negative() { "-Inf" } else { "+Inf" })
            }
            Scalar::Float(float) => f.write_str(&float_text(*float)),
            Scalar::Text(text) => f.write_str(text),
        }
    }
}

/// The shortest text of a number, with an exponent of two digits below 10^-4 and from 10^6 on.
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
