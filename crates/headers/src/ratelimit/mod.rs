//! Rate limit headers of a response.

mod draft11;
mod quota;
#[cfg(test)]
mod tests;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tollgate::{Decision, Policy};

use self::quota::Quota;
pub use self::quota::violated;

/// A style of rate limit headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`, as in draft-ietf-httpapi-ratelimit-headers-11.
    Draft11,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, in seconds from now.
    LegacyDelta,
    /// The same headers with the reset as a Unix time.
    LegacyEpoch,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
    Draft6,
}

/// Writes the limits of these decisions in each of the styles. Omits shadow policies, and decisions
/// without limits, such as those of a key list.
///
/// # Examples
/// ```
/// use http::HeaderMap;
/// use tollgate::{Key, MemoryLimiter, Policy};
/// use tollgate_headers::{HeaderStyle, write};
///
/// let policy = Policy::new("api", ["10/s".parse()?])?;
/// let decision = MemoryLimiter::new().check(&policy, Key::new("user:42")?);
/// let mut headers = HeaderMap::new();
/// write(&[HeaderStyle::Draft11], &mut headers, [(&policy, &decision)].into_iter());
/// assert_eq!(headers["ratelimit-policy"], r#""api";q=10;w=1"#);
/// assert_eq!(headers["ratelimit"], r#""api";r=9;t=1"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write<'a>(
    styles: &[HeaderStyle],
    headers: &mut HeaderMap,
    decisions: impl Iterator<Item = (&'a Policy, &'a Decision)> + Clone,
) {
    for style in styles {
        let quotas = quota::all(decisions.clone());
        match style {
            HeaderStyle::Draft11 => draft11::write(headers, quotas),
            HeaderStyle::Draft6 => {
                let quota = DRAFT6.write(headers, quotas, Quota::reset_seconds);
                // Both drafts have a `RateLimit-Policy`, in incompatible grammars.
                if let Some(quota) = quota
                    && !styles.contains(&HeaderStyle::Draft11)
                {
                    write_draft6_policy(headers, &quota);
                }
            }
            HeaderStyle::LegacyDelta => {
                LEGACY.write(headers, quotas, Quota::reset_seconds);
            }
            HeaderStyle::LegacyEpoch => {
                LEGACY.write(headers, quotas, Quota::epoch_seconds);
            }
        }
    }
}

/// The names of the headers of a style that describes one limit, the binding one.
struct Names {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

/// As draft-ietf-httpapi-ratelimit-headers-06.
static DRAFT6: Names = Names {
    limit: HeaderName::from_static("ratelimit-limit"),
    remaining: HeaderName::from_static("ratelimit-remaining"),
    reset: HeaderName::from_static("ratelimit-reset"),
};

static LEGACY: Names = Names {
    limit: HeaderName::from_static("x-ratelimit-limit"),
    remaining: HeaderName::from_static("x-ratelimit-remaining"),
    reset: HeaderName::from_static("x-ratelimit-reset"),
};

impl Names {
    /// Writes the headers of the binding limit, and returns that.
    fn write<'a>(
        &self,
        headers: &mut HeaderMap,
        quotas: impl Iterator<Item = Quota<'a>>,
        reset: fn(&Quota<'a>) -> Option<u64>,
    ) -> Option<Quota<'a>> {
        let quota = quota::binding(quotas)?;
        headers.insert(&self.limit, quota.capacity.into());
        headers.insert(&self.remaining, quota.remaining.into());
        if let Some(seconds) = reset(&quota) {
            headers.insert(&self.reset, seconds.into());
        }
        Some(quota)
    }
}

/// Writes `RateLimit-Policy: 100;w=60`. Concurrency limits have no window, which it needs.
fn write_draft6_policy(headers: &mut HeaderMap, quota: &Quota<'_>) {
    if let Some(window) = quota.window
        && let Ok(value) = HeaderValue::from_str(&format!("{};w={window}", quota.capacity))
    {
        headers.insert(draft11::POLICY, value);
    }
}
