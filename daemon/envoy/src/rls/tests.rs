//! Requests as they are counted: what the reference's own tests say of its statistics.

use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use hyper::header::HeaderMap;
use tollgate::{ManualClock, MemoryLimiter, Timestamp};

use tollgate_engine::{ActiveConfig, Engine, Principal, RequestContext, Surface};

use super::answer::answer;
use super::stats::RuleCounts;
use super::{EnvoyContext, EnvoyState};
use tollgate_config::{Charging, Config};
use tollgate_descriptors::{Domains, ReadOptions, Source};

#[path = "../../../server/tests/server/envoy/text.rs"]
mod text;

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

async fn ask(daemon: &Daemon, request: &RateLimitRequest) -> Option<String> {
    let (active, headers) = (daemon.engine.active(), HeaderMap::new());
    let request_context = RequestContext {
        engine: &daemon.engine,
        active: &active,
        principal: Principal::Anonymous { is_local: true },
        surface: Surface::Envoy,
        traceparent: None,
    };
    let context =
        EnvoyContext { request: request_context, state: &daemon.state, headers: &headers };
    answer(&context, request).await.ok().map(|response| text::format_response(&response))
}

/// What the rules have counted that counted anything: `stat total over near within shadow`.
fn counted(daemon: &Daemon) -> Vec<String> {
    let line = |rule_counts: &RuleCounts| {
        let stat = rule_counts.stat.strip_prefix("domain.").unwrap();
        let RuleCounts { total_hits, over_limit, near_limit, within_limit, shadow_mode, .. } =
            rule_counts;
        format!("{stat} {total_hits} {over_limit} {near_limit} {within_limit} {shadow_mode}")
    };
    daemon.state.stats.snapshot().rules.iter().map(line).collect()
}

async fn check(charging: Charging, requests: &[&str], expected: &[&str]) {
    let daemon = daemon(charging);
    for request in requests {
        ask(&daemon, &text::parse_request(request)).await.unwrap();
    }
    assert_eq!(counted(&daemon), expected, "{charging:?} {requests:?}");
}

#[tokio::test]
async fn hits_are_counted_as_the_reference_counts_them() {
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
async fn where_all_or_none_is_charged_none_of_what_is_denied_passes() {
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
async fn what_leads_nowhere_and_what_is_refused_is_counted() {
    let daemon = daemon(Charging::Reference);
    for request in ["elsewhere | a=b | c=d", "nowhere | a=b", "", "domain"] {
        ask(&daemon, &text::parse_request(request)).await;
    }
    let snapshot = daemon.state.stats.snapshot();
    let unknown = [("elsewhere".to_owned(), 2), ("nowhere".to_owned(), 1)];
    assert_eq!(snapshot.domains_not_found, unknown);
    assert_eq!((snapshot.service_errors, snapshot.store_errors), (2, 0));
}
