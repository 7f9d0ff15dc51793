//! Random requests that configured limits match.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::google::protobuf::UInt64Value;
use fastrand::Rng;
use serde_json::Value;

/// A configured domain.
#[derive(Debug)]
pub(crate) struct Domain {
    name: String,
    descriptors: Vec<Value>,
}

impl Domain {
    pub(crate) fn from_yaml(text: &str) -> Self {
        let file: Value = serde_norway::from_str(text).unwrap();
        Domain {
            name: file["domain"].as_str().unwrap().to_owned(),
            descriptors: file["descriptors"].as_array().unwrap().clone(),
        }
    }
}

/// Random requests of a seed.
#[derive(Debug)]
pub(crate) struct Requests {
    rng: Rng,
    domains: Vec<Domain>,
}

impl Requests {
    pub(crate) fn new(seed: u64, domains: Vec<Domain>) -> Self {
        Requests { rng: Rng::with_seed(seed), domains }
    }

    pub(crate) fn next(&mut self) -> RateLimitRequest {
        let rng = &mut self.rng;
        let domain = &self.domains[rng.usize(..self.domains.len())];
        let name = if one_in(rng, 50) { "unknown" } else { &domain.name };
        let count = if one_in(rng, 200) { 0 } else { rng.usize(1..=4) };
        let mut descriptors = Vec::new();
        for _ in 0..count {
            descriptors.push(descriptor(rng, &domain.descriptors));
        }
        // A repeated descriptor is counted twice.
        if one_in(rng, 10) {
            descriptors.extend(descriptors.first().cloned());
        }
        let hits_addend = if one_in(rng, 4) { rng.u32(0..=6) } else { 0 };
        RateLimitRequest { domain: name.to_owned(), descriptors, hits_addend }
    }
}

fn one_in(rng: &mut Rng, count: u32) -> bool {
    rng.u32(..count) == 0
}

/// A path through the configured levels, now and then with unknown entries.
fn descriptor(rng: &mut Rng, configured: &[Value]) -> RateLimitDescriptor {
    let mut descriptor = RateLimitDescriptor::default();
    if one_in(rng, 20) {
        return with_limit(rng, descriptor);
    }
    let mut level = configured;
    let mut admits_nothing = false;
    loop {
        if one_in(rng, 15) {
            descriptor.entries.push(entry("absent", letter(rng)));
            break;
        }
        let chosen = &level[rng.usize(..level.len())];
        let key = chosen["key"].as_str().unwrap();
        let value = match chosen["value"].as_str() {
            Some(value) => value.replace('*', &letter(rng)),
            None => letter(rng),
        };
        descriptor.entries.push(entry(key, value));
        admits_nothing = chosen["rate_limit"]["requests_per_unit"] == 0;
        match chosen["descriptors"].as_array() {
            Some(next) if !one_in(rng, 4) => level = next,
            _ => break,
        }
    }
    if one_in(rng, 8) {
        // The page has the difference for a limit of 0 to which nothing is charged.
        let least = u64::from(admits_nothing);
        descriptor.hits_addend = Some(UInt64Value { value: rng.u64(least..=5) });
    }
    descriptor
}

/// A descriptor with its own limit, one for each value: `docs/ratelimit.md` has the differences if
/// the limit of a key changes.
fn with_limit(rng: &mut Rng, mut descriptor: RateLimitDescriptor) -> RateLimitDescriptor {
    let (unit, requests_per_unit) = (rng.i32(1..=4), rng.u32(0..=3) * 3);
    descriptor.entries.push(entry("own", format!("{unit}.{requests_per_unit}.{}", letter(rng))));
    descriptor.limit = Some(RateLimitOverride { requests_per_unit, unit });
    descriptor
}

fn entry(key: &str, value: String) -> Entry {
    Entry { key: key.to_owned(), value }
}

/// One of few values, so that limits are reached.
fn letter(rng: &mut Rng) -> String {
    char::from(b'a' + rng.u8(..4)).to_string()
}
