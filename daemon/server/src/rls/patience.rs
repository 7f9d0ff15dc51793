//! How long the store may be waited for on behalf of a caller who has a deadline.

use std::time::Duration;

use hyper::header::HeaderMap;

/// Envoy says so too, in milliseconds, where it passes on a request's own deadline.
const OF_ENVOY: &str = "x-envoy-expected-rq-timeout-ms";

/// Three fifths of what the caller has left, so that the answer reaches it in time.
pub(super) fn patience_of(headers: &HeaderMap) -> Duration {
    let text = |name| headers.get(name).and_then(|header| header.to_str().ok());
    let of_call = text("grpc-timeout").and_then(timeout);
    let of_envoy = text(OF_ENVOY).and_then(|x| x.parse().ok()).map(Duration::from_millis);
    let left = of_call.into_iter().chain(of_envoy).min();
    left.map_or(Duration::MAX, |left| left.saturating_mul(3) / 5)
}

/// At most eight digits and a unit, as gRPC writes it over HTTP/2.
fn timeout(text: &str) -> Option<Duration> {
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
    fn three_fifths_of_what_is_left_are_waited() {
        for (of_call, of_envoy, micros) in [
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
            let told = [("grpc-timeout", of_call), (OF_ENVOY, of_envoy)];
            for (name, value) in told.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                headers.insert(name, value.parse().unwrap());
            }
            let expected = micros.map_or(Duration::MAX, Duration::from_micros);
            assert_eq!(patience_of(&headers), expected, "{of_call:?} {of_envoy:?}");
        }
    }
}
