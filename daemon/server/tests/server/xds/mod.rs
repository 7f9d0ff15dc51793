//! Limits from a control plane.

mod control_plane;
mod stream;
mod tls;

use std::time::Duration;

use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};
use tollgate_daemon::{Config, XdsOptions};

use self::control_plane::{ControlPlane, Session, resource};
use crate::envoy::check_all;
use crate::support::daemon::Daemon;
use crate::support::wait_until_ready;

/// Starts a daemon that takes its limits from a control plane, with a short backoff.
async fn start_with_options(plane: &ControlPlane, set: impl FnOnce(&mut XdsOptions)) -> Daemon {
    let mut config = Config::from_yaml("policies: {}").unwrap();
    config.envoy.merge_domains = true;
    config.envoy.xds = Some(options(plane, set));
    Daemon::start_with_config(config).await
}

fn options(plane: &ControlPlane, set: impl FnOnce(&mut XdsOptions)) -> XdsOptions {
    let mut options = XdsOptions::new(&plane.address.to_string()).unwrap();
    options.backoff_initial = Duration::from_millis(4);
    options.backoff_max = Duration::from_millis(16);
    set(&mut options);
    options
}

/// Starts a control plane and a daemon, and waits for the first request of their stream.
async fn start() -> (ControlPlane, Daemon, Session) {
    let mut plane = ControlPlane::start().await;
    let daemon = start_with_options(&plane, |_| {}).await;
    let session = open(&mut plane).await;
    (plane, daemon, session)
}

/// As [`start`], and sends version 1: `foo` with `k1=v1 3/DAY`.
async fn start_configured() -> (ControlPlane, Daemon, Session) {
    let (plane, daemon, mut session) = start().await;
    session.push_valid("1", one("foo", "k1=v1 3/DAY")).await;
    (plane, daemon, session)
}

/// Waits for the next stream and its first request.
async fn open(plane: &mut ControlPlane) -> Session {
    let mut session = plane.session().await;
    session.request().await;
    session
}

/// Waits for the next stream, and sends a version with this limit for `foo`.
async fn open_and_push(plane: &mut ControlPlane, version: &str, limit: &str) -> Session {
    let mut session = open(plane).await;
    session.push_valid(version, one("foo", limit)).await;
    session
}

/// Waits until the readiness page of a daemon has this status and contains this text.
async fn wait_for_readiness(daemon: &Daemon, status: u16, text: &str) {
    wait_until_ready(&mut daemon.connect().await, status, text).await;
}

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

fn config(name: &str, domain: &str, descriptors: Vec<RateLimitDescriptor>) -> Any {
    let (name, domain) = (name.to_owned(), domain.to_owned());
    resource(&RateLimitConfig { name, domain, descriptors })
}

/// A configuration of one domain with one limit.
fn one(domain: &str, line: &str) -> Vec<Any> {
    vec![config(domain, domain, vec![descriptor(line, Vec::new())])]
}

/// Sends one version after the other, and checks the rows of each when it is active.
async fn check(versions: Vec<(Vec<Any>, &str)>) {
    let (_plane, daemon, mut session) = start().await;
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
    check(vec![
        (one("foo", "k1=v1 3/DAY"), first),
        (one("foo", "k2=v2 5/DAY"), other),
        ([one("foo", "k1=v1 10/DAY"), one("bar", "k1=v1 100/DAY")].concat(), several),
        (Vec::new(), "> foo | k1=v1\n< OK | OK - 0 -"),
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
    let k2 = ["k2 unlimited", "k2=v2 15/DAY"].map(|line| descriptor(line, Vec::new()));
    let j2 = ["j2 unlimited", "j2=v2 15/DAY"].map(|line| descriptor(line, Vec::new()));
    let nested =
        vec![descriptor("k1=v1 10/DAY", k2.to_vec()), descriptor("j1=v2 unlimited", j2.to_vec())];
    let nested = vec![config("foo", "foo", nested), one("bar", "k1=v1 100/DAY").remove(0)];
    check(vec![(nested, nested_rows), (parts.to_vec(), parts_rows)]).await;
}
