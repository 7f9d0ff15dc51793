//! `draft11`: `RateLimit-Policy: "api";q=10;w=1` and `RateLimit: "api";r=9;t=1`, with one item per
//! limit, as draft-ietf-httpapi-ratelimit-headers-11 and the grammar of RFC 9651 define them.

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::quota::Quota;

pub(super) const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");
/// The most bytes of each header: gateways reject heads of more than 4 to 8 KiB.
pub(super) const MAX_BYTES: usize = 2_048;
/// The usual length of a header with one or two limits, in bytes.
const USUAL_BYTES: usize = 64;

pub(super) fn write<'a>(headers: &mut HeaderMap, quotas: impl Iterator<Item = Quota<'a>> + Clone) {
    let mut lists = Lists::new(quotas.clone());
    if lists.is_cut {
        // The binding limits matter most to clients.
        lists = Lists::new(quotas.filter(|quota| quota.is_binding));
    }
    for (name, list) in [(POLICY, lists.policy), (LIMIT, lists.limit)] {
        if let (false, Ok(value)) = (list.is_empty(), HeaderValue::from_str(&list)) {
            headers.insert(name, value);
        }
    }
}

/// The values of both headers.
struct Lists {
    policy: String,
    limit: String,
    /// Whether items are missing because a list would exceed [`MAX_BYTES`].
    is_cut: bool,
}

impl Lists {
    fn new<'a>(quotas: impl Iterator<Item = Quota<'a>>) -> Self {
        let mut lists = Lists {
            policy: String::with_capacity(USUAL_BYTES),
            limit: String::with_capacity(USUAL_BYTES),
            is_cut: false,
        };
        for quota in quotas {
            let (policy_len, limit_len) = (lists.policy.len(), lists.limit.len());
            lists.add(&quota);
            if lists.policy.len().max(lists.limit.len()) > MAX_BYTES {
                lists.policy.truncate(policy_len);
                lists.limit.truncate(limit_len);
                lists.is_cut = true;
                break;
            }
        }
        lists
    }

    fn add(&mut self, quota: &Quota<'_>) {
        if !quota.is_repeated {
            let policy = &mut self.policy;
            begin_item(policy, quota);
            parameter(policy, ";q=", quota.capacity);
            match quota.window {
                Some(window) => parameter(policy, ";w=", window),
                None => policy.push_str(";qu=\"concurrent-requests\""),
            }
        }
        begin_item(&mut self.limit, quota);
        parameter(&mut self.limit, ";r=", quota.remaining);
        if let Some(seconds) = quota.delta_seconds() {
            parameter(&mut self.limit, ";t=", seconds);
        }
    }
}

/// Appends the name of an item as a string, after a separator.
fn begin_item(list: &mut String, quota: &Quota<'_>) {
    list.push_str(if list.is_empty() { "\"" } else { ", \"" });
    let (name, rank) = quota.name();
    for char in name.chars() {
        match char {
            '"' | '\\' => list.extend(['\\', char]),
            ' '..='~' => list.push(char),
            // Strings of RFC 9651 have no other characters, and neither have names.
            _ => list.push('?'),
        }
    }
    if let Some(rank) = rank {
        list.push('.');
        list.push_str(itoa::Buffer::new().format(rank));
    }
    list.push('"');
}

fn parameter(list: &mut String, name: &str, value: u64) {
    list.push_str(name);
    list.push_str(itoa::Buffer::new().format(value));
}
