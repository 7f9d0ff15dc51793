//! Configurations that replace each other.

use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use super::control_plane::{ControlPlane, resource};
use super::{open, start};
use crate::envoy::check_all;

/// Parses a limit: `3/MINUTE` or `unlimited`.
fn limit(text: &str) -> Option<RateLimitPolicy> {
    let Some((count, unit)) = text.split_once('/') else {
        let unlimited = text == "unlimited";
        return unlimited.then(|| RateLimitPolicy { unlimited, ..RateLimitPolicy::default() });
    };
    Some(RateLimitPolicy {
        requests_per_unit: count.parse().unwrap(),
        unit: RateLimitUnit::from_str_name(unit).unwrap().into(),
        ..RateLimitPolicy::default()
    })
}

/// Parses `key=value 3/MINUTE`, and adds nested descriptors.
fn descriptor(line: &str, descriptors: Vec<RateLimitDescriptor>) -> RateLimitDescriptor {
    let (entry, text) = line.split_once(' ').unwrap_or((line, ""));
    let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
    RateLimitDescriptor {
        key: key.to_owned(),
        value: value.to_owned(),
        rate_limit: limit(text),
        descriptors,
        ..RateLimitDescriptor::default()
    }
}

pub(super) fn config(name: &str, domain: &str, descriptors: Vec<RateLimitDescriptor>) -> Any {
    let (name, domain) = (name.to_owned(), domain.to_owned());
    resource(&RateLimitConfig { name, domain, descriptors })
}

/// A configuration of one domain with one limit.
pub(super) fn one(domain: &str, line: &str) -> Vec<Any> {
    vec![config(domain, domain, vec![descriptor(line, Vec::new())])]
}

/// Sends one version after the other, and checks the rows of each when it is active.
async fn check(versions: Vec<(Vec<Any>, &str)>) {
    let mut plane = ControlPlane::start().await;
    let daemon = start(&plane).await;
    let mut session = open(&mut plane).await;
    for (version, (resources, rows)) in versions.into_iter().enumerate() {
        session.push_valid(&version.to_string(), resources).await;
        check_all(&daemon, rows).await;
    }
}

#[tokio::test]
async fn each_version_replaces_the_previous_one() {
    let first = "
        > foo | k1=v1
        < OK | OK 3/DAY 2 33200s
        > foo | k2=v2
        < OK | OK - 0 -
        > bar | k1=v1
        < OK | OK - 0 -
    ";
    let other = "
        > foo | k1=v1
        < OK | OK - 0 -
        > foo | k2=v2
        < OK | OK 5/DAY 4 33200s
    ";
    let several = "
        > foo | k1=v1
        < OK | OK 10/DAY 8 33200s
        > bar | k1=v1
        < OK | OK 100/DAY 99 33200s
    ";
    let none = "
        > foo | k1=v1
        < OK | OK - 0 -
    ";
    check(vec![
        (one("foo", "k1=v1 3/DAY"), first),
        (one("foo", "k2=v2 5/DAY"), other),
        ([one("foo", "k1=v1 10/DAY"), one("bar", "k1=v1 100/DAY")].concat(), several),
        (Vec::new(), none),
    ])
    .await;
}

#[tokio::test]
async fn nested_limits_and_split_domains_are_applied() {
    let parts = [("foo-1", "k1=v1 10/DAY"), ("foo-2", "k1=v2 100/DAY")];
    let parts = parts.map(|(name, line)| config(name, "foo", vec![descriptor(line, Vec::new())]));
    let nested_rows = "
        > foo | k1=v1
        < OK | OK 10/DAY 9 33200s
        > foo | k1=v1 k2=v2
        < OK | OK 15/DAY 14 33200s
        > foo | k1=v1 k2=other
        < OK | OK - all -
        > foo | j1=v2
        < OK | OK - all -
        > foo | j1=v2 j2=v2
        < OK | OK 15/DAY 14 33200s
    ";
    let parts_rows = "
        > foo | k1=v1
        < OK | OK 10/DAY 8 33200s
        > foo | k1=v2
        < OK | OK 100/DAY 99 33200s
    ";
    check(vec![(nested(), nested_rows), (parts.to_vec(), parts_rows)]).await;
}

fn nested() -> Vec<Any> {
    let k2 = ["k2 unlimited", "k2=v2 15/DAY"].map(|line| descriptor(line, Vec::new()));
    let j2 = ["j2 unlimited", "j2=v2 15/DAY"].map(|line| descriptor(line, Vec::new()));
    let descriptors =
        vec![descriptor("k1=v1 10/DAY", k2.to_vec()), descriptor("j1=v2 unlimited", j2.to_vec())];
    vec![config("foo", "foo", descriptors), one("bar", "k1=v1 100/DAY").remove(0)]
}
