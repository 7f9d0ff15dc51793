//! `legacy-epoch`: `X-RateLimit-Limit`, `-Remaining` and `-Reset` in seconds since the Unix epoch,
//! of the one limit that binds.

use hyper::header::HeaderMap;

use super::legacy_delta::{LIMIT, REMAINING, RESET};
use super::quota::{Quota, binding};

pub(super) fn write<'a>(headers: &mut HeaderMap, quotas: impl Iterator<Item = Quota<'a>>) {
    let Some(quota) = binding(quotas) else { return };
    headers.insert(LIMIT, quota.capacity.into());
    headers.insert(REMAINING, quota.remaining.into());
    if let Some(seconds) = quota.epoch_seconds() {
        headers.insert(RESET, seconds.into());
    }
}
