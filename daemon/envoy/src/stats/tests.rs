use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::google::protobuf::UInt64Value;
use hyper::header::HeaderMap;
use tollgate::{ManualClock, MemoryLimiter, Timestamp};
use tollgate_config::{Charging, Config};
use tollgate_descriptors::{Domains, ReadOptions, Source};
use tollgate_engine::{ActiveConfig, Engine, PeerAddress, Remote};
use tollgate_http::RequestHead;

use super::*;
use crate::EnvoyState;
use crate::answer::answer;

const ONE: LimitHits = LimitHits { hits: 1, limit: 10, before: Before::Used(0), is_shadow: false };

#[test]
fn the_number_of_series_is_bounded() {
    let stats = Stats::default();
    for value in 0..1_500 {
        stats.count("d", &format!("d.k_{value}"), NearLimit::default(), ONE);
    }
    stats.count("e", &"x".repeat(2_000), NearLimit::default(), ONE);
    for domain in 0..1_500 {
        stats.count_unknown(&format!("u{domain}"));
    }
    let snapshot = stats.snapshot();
    let hits = |stat| snapshot.rules.iter().find(|rule| rule.stat == stat).unwrap().total_hits;
    assert_eq!((hits("d.k_0"), hits("d.k_999"), hits("d._other")), (1, 1, 500));
    assert_eq!(hits("e._other"), 1);
    assert_eq!(snapshot.rules.len(), MAX_NAMES + 2);
    assert_eq!(snapshot.domains_not_found.len(), MAX_NAMES + 1);
    assert_eq!(snapshot.domains_not_found[0], (OTHER.to_owned(), 500));
}

#[test]
fn the_number_of_domains_is_bounded() {
    let stats = Stats::default();
    for domain in 0..1_200 {
        stats.count(&format!("d{domain}"), &format!("d{domain}.k"), NearLimit::default(), ONE);
    }
    let snapshot = stats.snapshot();
    assert_eq!(snapshot.rules.len(), MAX_NAMES + 1);
    assert_eq!((&*snapshot.rules[0].stat, snapshot.rules[0].total_hits), ("_other._other", 200));
}

#[test]
fn hits_that_a_shadow_rule_admits_are_counted_separately() {
    let stats = Stats::default();
    let over = LimitHits { hits: 1, limit: 15, before: Before::Used(15), is_shadow: true };
    stats.count("d", "d.k", NearLimit::default(), over);
    stats.count("d", "d.k", NearLimit::default(), LimitHits { before: Before::Used(14), ..over });
    let counts = stats.snapshot().rules.remove(0);
    assert_eq!((counts.total_hits, counts.over_limit, counts.shadow_mode), (2, 1, 1));
    assert_eq!((counts.within_limit, counts.near_limit), (1, 1));
}

#[test]
fn hits_are_split_as_in_envoyproxy_ratelimit() {
    // The limit, the usage before, the hits; how many are over, near and within.
    for (limit, before, hits, over, near, within) in [
        (10, 4, 1, 0, 0, 1),
        (10, 10, 1, 1, 0, 0),
        (10, 11, 0, 0, 0, 0),
        (15, 10, 1, 0, 0, 1),
        (15, 12, 1, 0, 1, 1),
        (15, 15, 1, 1, 0, 0),
        (20, 2, 3, 0, 0, 3),
        (8, 5, 2, 0, 1, 2),
        (20, 16, 3, 0, 3, 3),
        (20, 19, 3, 2, 1, 0),
        (20, 15, 7, 2, 4, 0),
        (10, 27, 3, 3, 0, 0),
        (0, 0, 1, 1, 0, 0),
        (10, 10, 0, 0, 0, 0),
    ] {
        let near_limit = NearLimit::default().threshold(limit);
        let split = Split::new(limit, near_limit, Before::Used(before), hits);
        assert_eq!(split, Split { over, near, within }, "{limit} {before} {hits}");
    }
}

const LIMITS: &str = "
domain: domain
descriptors:
  - { key: five, rate_limit: { unit: second, requests_per_unit: 10 } }
  - { key: hour, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: fifteen, rate_limit: { unit: hour, requests_per_unit: 15 } }
  - { key: twenty, rate_limit: { unit: second, requests_per_unit: 20 } }
  - { key: eight, rate_limit: { unit: second, requests_per_unit: 8 } }
  - { key: shadow, rate_limit: { unit: hour, requests_per_unit: 15 }, shadow_mode: true }
  - { key: none, rate_limit: { unit: hour, requests_per_unit: 0 } }
  - { key: free, rate_limit: { unlimited: true } }
";

/// A daemon without sockets.
struct Daemon {
    engine: Engine,
    state: EnvoyState,
}

fn daemon(charging: Charging) -> Daemon {
    let mut config = Config::from_yaml("policies: { own: { limits: [1/s] } }").unwrap();
    config.envoy.charging = charging;
    let options = ReadOptions { charging, ..ReadOptions::default() };
    let domains = Domains::from_yaml(&[Source::new("limits.yaml", LIMITS)], &options).unwrap();
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    let limiter = MemoryLimiter::builder().clock(clock).build();
    let engine = Engine::new(ActiveConfig::new(&config).unwrap(), limiter.into());
    engine.activate_domains(domains.into());
    Daemon { engine, state: EnvoyState::default() }
}

/// Parses `domain [+hits] | key=value [+hits|-hits] | …`.
fn parse(request: &str) -> RateLimitRequest {
    let mut parts = request.split(" | ");
    let head = parts.next().unwrap();
    let (domain, hits) = head.split_once(" +").unwrap_or((head, "0"));
    let descriptor = |text: &str| {
        let (entry, hits) = text.split_once(' ').unwrap_or((text, ""));
        let (key, value) = entry.split_once('=').unwrap();
        RateLimitDescriptor {
            entries: vec![Entry { key: key.to_owned(), value: value.to_owned() }],
            limit: None,
            hits_addend: hits.get(1..).map(|hits| UInt64Value { value: hits.parse().unwrap() }),
            is_negative_hits: hits.starts_with('-'),
        }
    };
    RateLimitRequest {
        domain: domain.to_owned(),
        descriptors: parts.map(descriptor).collect(),
        hits_addend: hits.parse().unwrap(),
    }
}

/// Sends a request. Returns whether it was decided.
async fn send(daemon: &Daemon, request: &str) -> bool {
    let Daemon { engine, state } = daemon;
    let (active, headers) = (engine.active(), HeaderMap::new());
    let remote = Remote::new(PeerAddress::Unix);
    let head = RequestHead::without_target(&headers);
    let context = EnvoyContext::authenticate(state, engine, &active, &remote, head).await;
    answer(&context.unwrap(), &parse(request)).await.is_ok()
}

/// Sends requests and compares the counts of each rule: `stat total over near within shadow`.
async fn check(charging: Charging, requests: &[&str], expected: &[&str]) {
    let daemon = daemon(charging);
    for request in requests {
        assert!(send(&daemon, request).await, "{request}");
    }
    let line = |counts: &RuleCounts| {
        let stat = counts.stat.strip_prefix("domain.").unwrap();
        let RuleCounts { total_hits, over_limit, near_limit, within_limit, shadow_mode, .. } =
            counts;
        format!("{stat} {total_hits} {over_limit} {near_limit} {within_limit} {shadow_mode}")
    };
    let counts: Vec<_> = daemon.state.stats.snapshot().rules.iter().map(line).collect();
    assert_eq!(counts, expected, "{charging:?} {requests:?}");
}

#[tokio::test]
async fn hits_are_counted_as_in_envoyproxy_ratelimit() {
    for (requests, expected) in [
        (&["domain | five=a +5"][..], &["five 5 0 0 5 0"][..]),
        (&["domain | hour=a +10", "domain | hour=a"], &["hour 11 1 2 10 0"]),
        (&["domain | hour=a +11", "domain | hour=a +0"], &["hour 11 1 2 0 0"]),
        (&["domain | fifteen=a +10", "domain | fifteen=a"], &["fifteen 11 0 0 11 0"]),
        (&["domain | fifteen=a +12", "domain | fifteen=a"], &["fifteen 13 0 1 13 0"]),
        (&["domain | fifteen=a +15", "domain | fifteen=a"], &["fifteen 16 1 3 15 0"]),
        (&["domain | twenty=a +2", "domain | twenty=a +3"], &["twenty 5 0 0 5 0"]),
        (&["domain | eight=a +5", "domain | eight=a +2"], &["eight 7 0 1 7 0"]),
        (&["domain | twenty=a +16", "domain | twenty=a +3"], &["twenty 19 0 3 19 0"]),
        (&["domain | twenty=a +19", "domain | twenty=a +3"], &["twenty 22 2 4 19 0"]),
        (&["domain | twenty=a +15", "domain | twenty=a +7"], &["twenty 22 2 4 15 0"]),
        (&["domain | five=a +20", "domain | five=a +3"], &["five 23 13 2 0 0"]),
        (&["domain | shadow=a +15", "domain | shadow=a"], &["shadow 16 1 3 15 1"]),
        (&["domain | shadow=a +14", "domain | shadow=a +3"], &["shadow 17 2 3 14 2"]),
        (&["domain | none=a +3"], &["none 3 3 0 0 0"]),
        (&["domain | free=a | other=a", "own | k=v", "domain | five=a -2"], &[]),
        (&["domain +2 | five=a | hour=b"], &["five 2 0 0 2 0", "hour 2 0 0 2 0"]),
    ] {
        check(Charging::Reference, requests, expected).await;
    }
}

#[tokio::test]
async fn no_denied_hit_is_within_the_limit_with_atomic_charging() {
    for (requests, expected) in [
        (&["domain | fifteen=a +12", "domain | fifteen=a"][..], &["fifteen 13 0 1 13 0"][..]),
        (&["domain | twenty=a +19", "domain | twenty=a +3"], &["twenty 22 3 3 19 0"]),
        (&["domain | shadow=a +14", "domain | shadow=a +3"], &["shadow 17 3 2 14 3"]),
        (
            &["domain +9 | five=a", "domain +2 | five=a | hour=a"],
            &["five 11 2 1 9 0", "hour 2 0 0 2 0"],
        ),
    ] {
        check(Charging::Atomic, requests, expected).await;
    }
}

#[tokio::test]
async fn unknown_domains_and_rejected_requests_are_counted() {
    let daemon = daemon(Charging::Reference);
    for request in ["elsewhere | a=b | c=d", "nowhere | a=b", "", "domain"] {
        send(&daemon, request).await;
    }
    let snapshot = daemon.state.stats.snapshot();
    let unknown = [("elsewhere".to_owned(), 2), ("nowhere".to_owned(), 1)];
    assert_eq!(snapshot.domains_not_found, unknown);
    assert_eq!((snapshot.service_errors, snapshot.store_errors), (2, 0));
}
