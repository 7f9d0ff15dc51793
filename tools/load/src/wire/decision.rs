//! The fields of a JSON decision that matter to a load test.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::reply::Decision;

#[derive(Debug, Deserialize)]
struct DecisionBody<'a> {
    allowed: bool,
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(default)]
    degraded: bool,
    #[serde(borrow)]
    time: &'a RawValue,
    #[serde(borrow)]
    delay: &'a RawValue,
}

/// Parses a decision.
pub(super) fn parse(body: &[u8]) -> Option<Decision> {
    let value: DecisionBody<'_> = serde_json::from_slice(body).ok()?;
    let (time, delay) = (micros(value.time.get())?, micros(value.delay.get())?);
    Some(Decision::from_fields(value.allowed, value.degraded, &value.reason, time, delay))
}

#[derive(Debug, Deserialize)]
struct Limits {
    limits: Vec<Limit>,
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: String,
}

/// The limits of a decision; empty if it contains none.
pub(super) fn limits(body: &[u8]) -> Vec<String> {
    match serde_json::from_slice::<Limits>(body) {
        Ok(parsed) => parsed.limits.into_iter().map(|limit| limit.limit).collect(),
        Err(_) => Vec::new(),
    }
}

#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

/// The detail of a problem document (RFC 9457).
pub(super) fn problem_detail(body: &[u8]) -> Option<String> {
    serde_json::from_slice::<Problem>(body).ok().map(|problem| problem.detail)
}

/// The microseconds of a number of seconds with up to six decimals.
fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    if part.len() > 6 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scale = 10_u64.checked_pow(u32::try_from(6 - part.len()).ok()?)?;
    let part: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_microsecond() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(micros(text), expected, "{text}");
        check("1763650000.123456", Some(1_763_650_000_123_456));
        check("0", Some(0));
        check("0.1", Some(100_000));
        check("0.1234567", None);
        check("-1", None);
        check("1e3", None);
        check("99999999999999999999", None);
    }
}
