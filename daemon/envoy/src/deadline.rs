//! The deadline of a call to the store.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName};

/// The header of gRPC for the deadline of the call.
const GRPC_HEADER: HeaderName = HeaderName::from_static("grpc-timeout");
/// The header of Envoy for the deadline of the client's request, in milliseconds.
const ENVOY_HEADER: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// Three fifths of the time that the caller waits, so that the response reaches it in time.
pub(super) fn deadline_from(headers: &HeaderMap) -> Duration {
    let text = |name: HeaderName| headers.get(name).and_then(|header| header.to_str().ok());
    let call_timeout = text(GRPC_HEADER).and_then(parse_timeout);
    let envoy_timeout =
        text(ENVOY_HEADER).and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    let left = call_timeout.into_iter().chain(envoy_timeout).min();
    left.map_or(Duration::MAX, |left| left.saturating_mul(3) / 5)
}

/// Parses at most eight digits and a unit, the format of gRPC over HTTP/2.
fn parse_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse::<u64>().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count.saturating_mul(3_600))),
        "M" => Some(Duration::from_secs(count.saturating_mul(60))),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_is_three_fifths_of_the_shorter_timeout() {
        for (call_timeout, envoy_timeout, micros) in [
            (Some("20m"), None, Some(12_000)),
            (Some("1S"), None, Some(600_000)),
            (Some("1M"), None, Some(36_000_000)),
            (Some("99999999H"), None, Some(215_999_997_840_000_000)),
            (Some("15000u"), None, Some(9_000)),
            (Some("5000n"), None, Some(3)),
            (Some("0m"), None, Some(0)),
            (None, Some("25"), Some(15_000)),
            (Some("20m"), Some("10"), Some(6_000)),
            (Some("20m"), Some("15000"), Some(12_000)),
            (Some("999999999m"), None, None),
            (Some("m"), None, None),
            (Some("20"), None, None),
            (Some("20x"), None, None),
            (Some("-2m"), None, None),
            (Some("2\u{b5}"), None, None),
            (Some(""), Some("x"), None),
            (None, None, None),
        ] {
            let mut headers = HeaderMap::new();
            let all = [(GRPC_HEADER, call_timeout), (ENVOY_HEADER, envoy_timeout)];
            for (name, value) in all.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                headers.insert(name, value.parse().unwrap());
            }
            let expected = micros.map_or(Duration::MAX, Duration::from_micros);
            assert_eq!(deadline_from(&headers), expected, "{call_timeout:?} {envoy_timeout:?}");
        }
    }
}
