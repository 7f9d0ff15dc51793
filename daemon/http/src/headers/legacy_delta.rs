//! `legacy-delta`: `X-RateLimit-Limit`, `-Remaining` and `-Reset` in seconds from now, of the one
//! limit that binds.

use hyper::header::{HeaderMap, HeaderName};

use super::quota::{Quota, binding};

pub(super) const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
pub(super) const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
pub(super) const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

pub(super) fn write<'a>(headers: &mut HeaderMap, quotas: impl Iterator<Item = Quota<'a>>) {
    let Some(quota) = binding(quotas) else { return };
    headers.insert(LIMIT, quota.capacity.into());
    headers.insert(REMAINING, quota.remaining.into());
    if let Some(seconds) = quota.reset_seconds() {
        headers.insert(RESET, seconds.into());
    }
}
