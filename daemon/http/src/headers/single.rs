//! Styles with headers for one limit, the binding one: `draft6`, `legacy-delta`, `legacy-epoch`.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::quota::{Quota, binding};

/// `RateLimit-Policy: 100;w=60`, of `draft6` only.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The names of the headers of a style.
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
    fn write(&self, headers: &mut HeaderMap, quota: &Quota<'_>, reset: Option<u64>) {
        headers.insert(&self.limit, quota.capacity.into());
        headers.insert(&self.remaining, quota.remaining.into());
        if let Some(seconds) = reset {
            headers.insert(&self.reset, seconds.into());
        }
    }
}

/// Writes the headers of `draft6`, whose reset is in seconds from now.
pub(super) fn write_draft6<'a>(
    headers: &mut HeaderMap,
    quotas: impl Iterator<Item = Quota<'a>>,
    with_policy: bool,
) {
    let Some(quota) = binding(quotas) else { return };
    DRAFT6.write(headers, &quota, quota.reset_seconds());
    // A policy needs a window, which concurrency limits do not have.
    let Some(window) = quota.window.filter(|_| with_policy) else { return };
    if let Ok(value) = HeaderValue::from_str(&format!("{};w={window}", quota.capacity)) {
        headers.insert(POLICY, value);
    }
}

/// Writes the headers of a legacy style; `reset` is that of `legacy-delta` or `legacy-epoch`.
pub(super) fn write_legacy<'a>(
    headers: &mut HeaderMap,
    quotas: impl Iterator<Item = Quota<'a>>,
    reset: fn(&Quota<'a>) -> Option<u64>,
) {
    let Some(quota) = binding(quotas) else { return };
    LEGACY.write(headers, &quota, reset(&quota));
}
