//! Values of variables, in the syntax of Go's envconfig.

use std::time::Duration;

/// The type of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Whole,
    Bool,
    Duration,
    /// A decimal fraction.
    Decimal,
    /// `NAME:VALUE`, separated by commas.
    Pairs,
}

/// A parsed value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(i64),
    Bool(bool),
    Duration(Duration),
    /// A decimal fraction in millionths, so that no decision depends on a float.
    Decimal(u64),
    Pairs(Vec<(String, String)>),
}

impl Kind {
    /// The name for `--variables`.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Whole => "number",
            Kind::Bool => "boolean",
            Kind::Duration => "duration",
            Kind::Decimal => "decimal",
            Kind::Pairs => "pairs",
        }
    }

    /// Parses a value; the error states what to write.
    pub(super) fn parse(self, text: &str) -> Result<Value, &'static str> {
        match self {
            Kind::Text => Ok(Value::Text(text.to_owned())),
            Kind::Whole => whole(text).map(Value::Whole).ok_or("write a whole number"),
            Kind::Bool => boolean(text).map(Value::Bool).ok_or("write true or false"),
            Kind::Duration => duration(text)
                .map(Value::Duration)
                .ok_or("write a number and its unit, such as 300ms, 10s or 24h"),
            Kind::Decimal => decimal(text).map(Value::Decimal).ok_or("write a number such as 0.8"),
            Kind::Pairs => pairs(text).map(Value::Pairs).ok_or("write NAME:VALUE,NAME:VALUE"),
        }
    }
}

/// A decimal number, or with prefix a binary, octal or hexadecimal one, in which `_` may separate
/// digits.
fn whole(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.get(..2) {
        Some("0x") => (16, lower.get(2..)?),
        Some("0o") => (8, lower.get(2..)?),
        Some("0b") => (2, lower.get(2..)?),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, lower.get(1..)?),
        _ => (10, &*lower),
    };
    let has_wrong_separator = digits.starts_with('_') && base == 10 || digits.ends_with('_');
    if has_wrong_separator || digits.contains("__") || digits.starts_with(['+', '-']) {
        return None;
    }
    let number = i64::from_str_radix(&digits.replace('_', ""), base).ok()?;
    Some(if is_negative { -number } else { number })
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// Numbers with units, such as `1h30m`; 0 needs no unit. Negative durations are invalid.
fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let unit_end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(unit_end.unwrap_or(after.len()));
        total = total.checked_add(part_of_duration(number, unit)?)?;
        rest = after;
    }
    Some(total)
}

fn part_of_duration(number: &str, unit: &str) -> Option<Duration> {
    let nanos: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    // Later digits are below a nanosecond, even in hours.
    let fraction = fraction.get(..fraction.len().min(15))?;
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let nanos = u128::from(digits(whole)?) * nanos + u128::from(digits(fraction)?) * nanos / scale;
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// A decimal fraction in millionths that is not negative; digits after the sixth are dropped.
fn decimal(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && fraction.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: String = fraction.chars().chain("000000".chars()).take(6).collect();
    whole.checked_mul(1_000_000)?.checked_add(fraction.parse().ok()?)
}

fn parts(text: &str) -> impl Iterator<Item = &str> {
    (!text.trim().is_empty()).then(|| text.split(',')).into_iter().flatten()
}

fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let pair = |text: &str| {
        let (name, value) = text.split_once(':').filter(|(_, value)| !value.contains(':'))?;
        Some((name.to_owned(), value.to_owned()))
    };
    parts(text).map(pair).collect()
}

/// Whether two texts are the same, or the same value in different notations.
pub(super) fn is_equal(left: &str, right: &str) -> bool {
    let kinds = [Kind::Whole, Kind::Bool, Kind::Duration, Kind::Decimal];
    left == right
        || kinds.iter().any(|kind| match (kind.parse(left), kind.parse(right)) {
            (Ok(left), Ok(right)) => left == right,
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_parsed_like_go_does() {
        let owned = |text: &str| text.to_owned();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let nanos = |nanos| Some(Value::Duration(Duration::from_nanos(nanos)));
        let millionths = |millionths| Some(Value::Decimal(millionths));
        for (kind, text, value) in [
            (Kind::Text, "", Some(Value::Text(owned("")))),
            (Kind::Text, " a ", Some(Value::Text(owned(" a ")))),
            (Kind::Whole, "8080", Some(Value::Whole(8080))),
            (Kind::Whole, "-1", Some(Value::Whole(-1))),
            (Kind::Whole, "0", Some(Value::Whole(0))),
            (Kind::Whole, "0x1F", Some(Value::Whole(31))),
            (Kind::Whole, "010", Some(Value::Whole(8))),
            (Kind::Whole, "0b11", Some(Value::Whole(3))),
            (Kind::Whole, "0o17", Some(Value::Whole(15))),
            (Kind::Whole, "", None),
            (Kind::Whole, "8080 ", None),
            (Kind::Whole, "+-1", None),
            (Kind::Whole, "9223372036854775808", None),
            (Kind::Whole, "1e3", None),
            (Kind::Bool, "1", Some(Value::Bool(true))),
            (Kind::Bool, "t", Some(Value::Bool(true))),
            (Kind::Bool, "True", Some(Value::Bool(true))),
            (Kind::Bool, "F", Some(Value::Bool(false))),
            (Kind::Bool, "tRUE", None),
            (Kind::Bool, "yes", None),
            (Kind::Bool, "", None),
            (Kind::Duration, "24h", nanos(86_400_000_000_000)),
            (Kind::Duration, "300ms", nanos(300_000_000)),
            (Kind::Duration, "1h30m", nanos(5_400_000_000_000)),
            (Kind::Duration, "1.5s", nanos(1_500_000_000)),
            (Kind::Duration, ".5us", nanos(500)),
            (Kind::Duration, "150µs", nanos(150_000)),
            (Kind::Duration, "0", nanos(0)),
            (Kind::Duration, "10", None),
            (Kind::Duration, "", None),
            (Kind::Duration, "s", None),
            (Kind::Duration, ".s", None),
            (Kind::Duration, "-1s", None),
            (Kind::Duration, "1d", None),
            (Kind::Duration, "1.2.3s", None),
            (Kind::Duration, "99999999999999999999h", None),
            (Kind::Decimal, "0.8", millionths(800_000)),
            (Kind::Decimal, "1", millionths(1_000_000)),
            (Kind::Decimal, ".5", millionths(500_000)),
            (Kind::Decimal, "0.33333333", millionths(333_333)),
            (Kind::Decimal, "-0.1", None),
            (Kind::Decimal, ".", None),
            (Kind::Decimal, "NaN", None),
            (Kind::Pairs, " ", Some(Value::Pairs(vec![]))),
            (Kind::Pairs, "a:1,b:", Some(Value::Pairs(vec![pair("a", "1"), pair("b", "")]))),
            (Kind::Pairs, "a", None),
            (Kind::Pairs, "a:b:c", None),
        ] {
            assert_eq!(kind.parse(text).ok(), value, "{} {text:?}", kind.name());
        }
    }
}
