//! What the headers of an upstream's response say about the next request to it.

use std::time::{Duration, UNIX_EPOCH};

use http::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use tollgate::Timestamp;

/// A reset of more seconds than this is a Unix time.
const MIN_EPOCH: u64 = 1_000_000_000;
/// A reset of more than this is a Unix time in milliseconds.
const MIN_EPOCH_MILLIS: u64 = 100_000_000_000;

/// The headers of the remaining requests and of their reset.
static REMAINING: [(HeaderName, HeaderName); 2] = [
    (HeaderName::from_static("ratelimit-remaining"), HeaderName::from_static("ratelimit-reset")),
    (
        HeaderName::from_static("x-ratelimit-remaining"),
        HeaderName::from_static("x-ratelimit-reset"),
    ),
];
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// Returns how long a client waits before its next request to the upstream that sent this response;
/// `None` if it need not wait.
///
/// Reads `Retry-After` of responses with the status 429 or 503, in seconds or as a date; `RateLimit` of
/// draft-ietf-httpapi-ratelimit-headers from version 7 on; and if nothing remains, `RateLimit-Reset` and
/// `X-RateLimit-Reset`, in seconds or as a Unix time. The longest time applies. Times are relative to
/// the response's `Date`, or without it, to `now`. An invalid header is ignored.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// use tollgate::Timestamp;
/// use tollgate_headers::upstream_wait;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("ratelimit", "\"minute\";r=0;t=30, \"hour\";r=120;t=900".parse()?);
/// let wait = upstream_wait(StatusCode::OK, &headers, Timestamp::EPOCH);
/// assert_eq!(wait, Some(Duration::from_secs(30)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn upstream_wait(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let now = headers.get(DATE).and_then(date).unwrap_or(now.as_micros() / 1_000_000);
    let is_refused =
        matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
    let retry_after = headers.get(RETRY_AFTER).filter(|_| is_refused).and_then(|value| {
        seconds(value.to_str().ok()?).or_else(|| Some(date(value)?.saturating_sub(now)))
    });
    let resets = REMAINING.iter().filter_map(|(remaining, reset)| {
        let text = |name| headers.get(name)?.to_str().ok();
        (seconds(text(remaining)?)? == 0).then(|| until(seconds(text(reset)?)?, now)).flatten()
    });
    let draft =
        headers.get_all(RATE_LIMIT).iter().filter_map(|value| exhausted(value.to_str().ok()?));
    let wait = retry_after.into_iter().chain(resets).chain(draft).max()?;
    Some(Duration::from_secs(wait)).filter(|wait| !wait.is_zero())
}

/// The seconds until a reset, which is a number of seconds or a Unix time.
fn until(reset: u64, now: u64) -> Option<u64> {
    match reset {
        MIN_EPOCH_MILLIS.. => Some(reset.div_ceil(1_000).saturating_sub(now)),
        MIN_EPOCH.. => Some(reset.saturating_sub(now)),
        _ => Some(reset),
    }
}

/// A number of seconds, rounded up if it has decimals.
fn seconds(text: &str) -> Option<u64> {
    let (whole, decimals) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    if whole.is_empty() || !whole.bytes().chain(decimals.bytes()).all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let is_rounded = decimals.bytes().any(|byte| byte != b'0');
    whole.parse::<u64>().ok()?.checked_add(u64::from(is_rounded))
}

/// The seconds since the epoch of an HTTP date.
fn date(value: &HeaderValue) -> Option<u64> {
    let date = httpdate::parse_http_date(value.to_str().ok()?).ok()?;
    Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

/// The longest time until the reset of a limit of which nothing remains, in a `RateLimit` header:
/// `"name";r=0;t=30` since draft 8, and `limit=10, remaining=0, reset=30` in draft 7.
fn exhausted(list: &str) -> Option<u64> {
    let mut longest = None;
    let (mut remaining, mut reset) = (None, None);
    let mut note = |remaining: &mut Option<u64>, reset: &mut Option<u64>| {
        let wait = reset.take().filter(|_| *remaining == Some(0));
        longest = longest.max(wait);
        *remaining = None;
    };
    for item in split(list, ',') {
        let mut is_draft7 = true;
        for (index, part) in split(item, ';').enumerate() {
            match part.trim().split_once('=') {
                Some(("r" | "remaining", value)) => remaining = seconds(value),
                Some(("t" | "reset", value)) => reset = seconds(value),
                _ if index == 0 => {
                    // A quoted name may contain the character.
                    is_draft7 = part.contains('=') && !part.trim_start().starts_with('"');
                }
                _ => {}
            }
        }
        if !is_draft7 {
            note(&mut remaining, &mut reset);
        }
    }
    note(&mut remaining, &mut reset);
    longest
}

/// Splits a text at a character outside of quoted strings.
fn split(text: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |char: char| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match char {
            '\\' if is_quoted && !was_escaped => is_escaped = true,
            '"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        !is_quoted && char == at
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

    fn wait(status: u16, lines: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line.split_once(": ").unwrap();
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        let status = StatusCode::from_u16(status).unwrap();
        upstream_wait(status, &headers, NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn headers_of_an_upstream_are_read_in_every_style() {
        for (status, lines, expected) in [
            (200, &[][..], None),
            (429, &[], None),
            (429, &["retry-after: 30"], Some(30)),
            (503, &["retry-after: 30"], Some(30)),
            // A redirect has another meaning of the header.
            (301, &["retry-after: 30"], None),
            (429, &["retry-after: 0"], None),
            (429, &["retry-after: 1.2"], Some(2)),
            (429, &["retry-after: -1"], None),
            (429, &["retry-after: soon"], None),
            (429, &["retry-after: 99999999999999999999"], None),
            (429, &["retry-after: Tue, 14 Nov 2023 22:13:50 GMT"], Some(30)),
            (
                429,
                &[
                    "date: Tue, 14 Nov 2023 22:13:40 GMT",
                    "retry-after: Tue, 14 Nov 2023 22:13:50 GMT",
                ],
                Some(10),
            ),
            (429, &["retry-after: Tue, 14 Nov 2023 22:13:10 GMT"], None),
            (200, &["ratelimit: \"api\";r=0;t=30"], Some(30)),
            (200, &["ratelimit: \"api\";r=1;t=30"], None),
            (200, &["ratelimit: \"api\";r=0"], None),
            (200, &["ratelimit: \"a\";r=0;t=3, \"b\";r=0;t=9, \"c\";r=5;t=60"], Some(9)),
            (200, &["ratelimit: \"a\";r=0;t=3", "ratelimit: \"b\";r=0;t=9"], Some(9)),
            (200, &["ratelimit: \"a;r=0;t=7,\\\"\";r=1;t=5"], None),
            (200, &["ratelimit: \"=a.1\";r=0;t=30, \"=a.2\";r=4;t=60"], Some(30)),
            (200, &["ratelimit: limit=10, remaining=0, reset=4"], Some(4)),
            (200, &["ratelimit: limit=10, remaining=2, reset=4"], None),
            (200, &["ratelimit-remaining: 0", "ratelimit-reset: 5"], Some(5)),
            (200, &["x-ratelimit-remaining: 0", "x-ratelimit-reset: 5"], Some(5)),
            (200, &["x-ratelimit-remaining: 3", "x-ratelimit-reset: 5"], None),
            (200, &["x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000012"], Some(12)),
            (200, &["x-ratelimit-remaining: 0", "x-ratelimit-reset: 1700000012500"], Some(13)),
            (200, &["x-ratelimit-remaining: 0", "x-ratelimit-reset: 1600000000"], None),
            (429, &["retry-after: 3", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 5"], Some(5)),
        ] {
            assert_eq!(wait(status, lines), expected, "{status} {lines:?}");
        }
    }
}
