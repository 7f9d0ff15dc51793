//! The headers that Envoy is to add to its client's response.
//!
//! They tell of one descriptor: the last that denies, else the one with the least left.

use envoy_types::pb::envoy::config::core::v3::HeaderValue;
use hyper::header::{HeaderMap, RETRY_AFTER};

use super::asked::Asked;
use super::batch::Said;
use super::status::Spoken;
use crate::config::CompatHeaders;
use crate::http::{self, Exchange};

pub(super) fn headers(
    exchange: &Exchange<'_>,
    asked: &[Asked<'_>],
    said: &[Said],
    spoken: &[Spoken],
) -> Vec<HeaderValue> {
    let envoy = &exchange.live.envoy;
    let mut headers = Vec::new();
    if !envoy.response_headers && envoy.compat.headers.is_none() {
        return headers;
    }
    let Some(at) = told(exchange, asked, spoken) else { return headers };
    if envoy.response_headers
        && let (Some(asked), Some(said), Some(spoken)) =
            (asked.get(at), said.get(at), spoken.get(at))
    {
        headers.extend(ours(exchange, asked, said, spoken));
    }
    if let (Some(names), Some(spoken)) = (&envoy.compat.headers, spoken.get(at)) {
        headers.extend(reference(names, spoken).into_iter().flatten());
    }
    headers
}

/// Which descriptor is told of.
fn told(exchange: &Exchange<'_>, asked: &[Asked<'_>], spoken: &[Spoken]) -> Option<usize> {
    let mut least = None;
    let mut remaining = u32::MAX;
    for (at, (asked, spoken)) in asked.iter().zip(spoken).enumerate() {
        let status = &spoken.status;
        if status.current_limit.is_some() && status.limit_remaining < remaining {
            (least, remaining) = (Some(at), status.limit_remaining);
        }
        if spoken.denies() && !asked.is_quota(exchange.live.envoy.compat.quota_mode) {
            (least, remaining) = (Some(at), 0);
        }
    }
    least
}

/// In the styles of `headers`.
fn ours(
    exchange: &Exchange<'_>,
    asked: &Asked<'_>,
    said: &Said,
    spoken: &Spoken,
) -> Vec<HeaderValue> {
    let mut map = HeaderMap::new();
    if let (Some(policy), Said::Decided { decision, .. }) = (asked.target.policy(), said) {
        http::write_headers(&exchange.live.headers, &mut map, std::iter::once((policy, decision)));
    }
    let wait = spoken.status.duration_until_reset.filter(|_| spoken.denies());
    if let Some(wait) = wait {
        map.insert(RETRY_AFTER, wait.seconds.into());
    }
    let told = map
        .iter()
        .filter_map(|(name, value)| Some(header(name.as_str(), value.to_str().ok()?.to_owned())));
    told.collect()
}

/// As the reference has them.
fn reference(names: &CompatHeaders, spoken: &Spoken) -> Option<[HeaderValue; 3]> {
    let status = &spoken.status;
    let limit = status.current_limit.as_ref()?.requests_per_unit;
    let reset =
        status.duration_until_reset.map_or(0, |duration_until_reset| duration_until_reset.seconds);
    Some([
        header(&names.limit, limit.to_string()),
        header(&names.remaining, status.limit_remaining.to_string()),
        header(&names.reset, reset.to_string()),
    ])
}

fn header(key: &str, value: String) -> HeaderValue {
    HeaderValue { key: key.to_owned(), value, ..HeaderValue::default() }
}
