//! `draft6`: `RateLimit-Limit`, `-Remaining` and `-Reset` in seconds, and `RateLimit-Policy:
//! 100;w=60`, of the one limit that binds, as that draft's sixth edition has them.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::quota::{Quota, binding};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

pub(super) fn write<'a>(
    headers: &mut HeaderMap,
    quotas: impl Iterator<Item = Quota<'a>>,
    with_policy: bool,
) {
    let Some(quota) = binding(quotas) else { return };
    headers.insert(LIMIT, quota.capacity.into());
    headers.insert(REMAINING, quota.remaining.into());
    if let Some(seconds) = quota.reset_seconds() {
        headers.insert(RESET, seconds.into());
    }
    // A policy needs a window there, which requests in flight do not have.
    let Some(window) = quota.window.filter(|_| with_policy) else { return };
    if let Ok(value) = HeaderValue::from_str(&format!("{};w={window}", quota.capacity)) {
        headers.insert(POLICY, value);
    }
}
