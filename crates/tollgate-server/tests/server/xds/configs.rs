//! Configurations that come and go, as the reference takes them.

use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use super::plane::{Plane, Session, resource};
use super::start;
use crate::daemon::Daemon;
use crate::rls::check_all;

/// A limit: `3/MINUTE` or `unlimited`.
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

/// `key=value 3/MINUTE`, with what is below it.
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

/// One domain with one limit.
pub(super) fn one(domain: &str, line: &str) -> Vec<Any> {
    vec![config(domain, domain, vec![descriptor(line, Vec::new())])]
}

/// Sends a version, and holds the answers to the rows when it holds.
async fn check(
    daemon: &Daemon,
    session: &mut Session,
    version: &str,
    resources: Vec<Any>,
    rows: &str,
) {
    session.push_good(version, resources).await;
    check_all(daemon, rows).await;
}

#[tokio::test]
async fn configurations_replace_each_other_whole() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    let mut turn = async |version, resources, rows| {
        check(&daemon, &mut session, version, resources, rows).await;
    };
    // The first.
    turn(
        "1",
        one("foo", "k1=v1 3/DAY"),
        "
        > foo | k1=v1
        < OK | OK 3/DAY 2 33200s
        > foo | k2=v2
        < OK | OK - 0 -
        > bar | k1=v1
        < OK | OK - 0 -
    ",
    )
    .await;
    // Another one.
    turn(
        "2",
        one("foo", "k2=v2 5/DAY"),
        "
        > foo | k1=v1
        < OK | OK - 0 -
        > foo | k2=v2
        < OK | OK 5/DAY 4 33200s
    ",
    )
    .await;
    // Several domains.
    turn(
        "3",
        [one("foo", "k1=v1 10/DAY"), one("bar", "k1=v1 100/DAY")].concat(),
        "
        > foo | k1=v1
        < OK | OK 10/DAY 8 33200s
        > bar | k1=v1
        < OK | OK 100/DAY 99 33200s
    ",
    )
    .await;
    // Limits further down.
    turn(
        "4",
        deep(),
        "
        > foo | k1=v1
        < OK | OK 10/DAY 7 33200s
        > foo | k1=v1 k2=v2
        < OK | OK 15/DAY 14 33200s
        > foo | k1=v1 k2=other
        < OK | OK - all -
        > foo | j1=v2
        < OK | OK - all -
        > foo | j1=v2 j2=v2
        < OK | OK 15/DAY 14 33200s
    ",
    )
    .await;
    // One domain in two parts.
    let parts = [("foo-1", "k1=v1 10/DAY"), ("foo-2", "k1=v2 100/DAY")];
    let parts = parts.map(|(name, line)| config(name, "foo", vec![descriptor(line, Vec::new())]));
    turn(
        "5",
        parts.to_vec(),
        "
        > foo | k1=v1
        < OK | OK 10/DAY 6 33200s
        > foo | k1=v2
        < OK | OK 100/DAY 99 33200s
    ",
    )
    .await;
    // None.
    turn(
        "6",
        Vec::new(),
        "
        > foo | k1=v1
        < OK | OK - 0 -
    ",
    )
    .await;
}

fn deep() -> Vec<Any> {
    let k2 = ["k2 unlimited", "k2=v2 15/DAY"].map(|it| descriptor(it, Vec::new()));
    let j2 = ["j2 unlimited", "j2=v2 15/DAY"].map(|it| descriptor(it, Vec::new()));
    let below =
        vec![descriptor("k1=v1 10/DAY", k2.to_vec()), descriptor("j1=v2 unlimited", j2.to_vec())];
    vec![config("foo", "foo", below), one("bar", "k1=v1 100/DAY").remove(0)]
}
