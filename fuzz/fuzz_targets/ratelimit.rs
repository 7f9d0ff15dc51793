//! Sends an arbitrary message to the rate limit service three times, as protobuf or as JSON: a
//! response has a status for each descriptor, and a refused request changes nothing.
//!
//! The bits of the first byte select how descriptors are charged, and the form of the message.
//!
//! `cargo xtask fuzz ratelimit`
#![no_main]

use std::sync::{Arc, LazyLock};

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::{Method, Request, StatusCode};
use libfuzzer_sys::fuzz_target;
use prost::Message;
use tollgate::Policy;
use tollgate_config::{Charging, Config};
use tollgate_descriptors::{Domains, Lookup, ReadOptions, Source, key};
use tollgate_envoy::{EnvoyState, answer_call, answer_json};
use tollgate_fuzz::{Daemon, State, block_on, body, request, serve, statuses};
use tollgate_http::Reply;

const CONFIG: &str = r#"
operators: loopback
limits: { body: 512, key_bytes: 64, checks: 4 }
policies:
  a: { limits: ["2/s"] }
  s: { limits: ["2 concurrent lease 60s"] }
envoy: { response_headers: true, dynamic_metadata: true, refunds_and_limits: all }
"#;

/// Rules of every kind, and low limits that three requests reach.
const DESCRIPTORS: &str = "
domain: d
descriptors:
  - { key: u, rate_limit: { unit: minute, requests_per_unit: 2 } }
  - key: u
    value: v
    rate_limit: { unit: second, requests_per_unit: 1, name: one, replaces: [{ name: two }] }
    descriptors:
      - { key: p, value: w*, rate_limit: { unit: hour, requests_per_unit: 3 } }
      - { key: p, rate_limit: { unlimited: true }, detailed_metric: true }
  - { key: t, rate_limit: { name: two, unit: day, requests_per_unit: 2 }, share_threshold: false }
  - { key: n, rate_limit: { unit: year, requests_per_unit: 0 } }
  - { key: s, rate_limit: { unit: hour, requests_per_unit: 1 }, shadow_mode: true }
";

/// Of a message as JSON, the descriptors whose state is compared.
const ENTRIES: [(&str, &str); 6] =
    [("u", "v"), ("u", "x"), ("t", ""), ("n", "v"), ("s", "v"), ("", "")];

/// A configuration, and its rules.
type Service = (Config, Arc<Domains>);

static ATOMIC: LazyLock<Service> = LazyLock::new(|| service(Charging::Atomic));
static REFERENCE: LazyLock<Service> = LazyLock::new(|| service(Charging::Reference));

fuzz_target!(|bytes: &[u8]| {
    let Some((selector, bytes)) = bytes.split_first() else { return };
    let (config, domains) = if selector & 1 == 0 { &*ATOMIC } else { &*REFERENCE };
    let daemon = Daemon::new(config);
    daemon.engine.activate_domains(Arc::clone(domains));
    let service = EnvoyState::default();
    if selector & 2 == 0 {
        let Ok(message) = RateLimitRequest::decode(bytes) else { return };
        for _ in 0..3 {
            block_on(call(&daemon, &service, &message));
        }
    } else {
        let text = [b"POST /json HTTP/1.1\n\n", bytes].concat();
        for _ in 0..3 {
            serve(&request(&text), async |request| {
                call_json(&daemon, &service, request, bytes).await
            });
        }
    }
});

async fn call(daemon: &Daemon, service: &EnvoyState, message: &RateLimitRequest) {
    let keys = message.descriptors.iter().flat_map(|descriptor| {
        let entries = descriptor.entries.iter();
        let entries: Vec<_> = entries.map(|entry| (&*entry.key, &*entry.value)).collect();
        keys(daemon, &message.domain, &entries)
    });
    let keys: Vec<_> = keys.collect();
    let before = state(daemon, &keys);
    let answer =
        answer_call(&daemon.engine, service, &daemon.remote, &HeaderMap::new(), message).await;
    let refuses = match &answer {
        Ok(response) => {
            check_response(response, message);
            // Refunds and shadow rules are charged on their own.
            let is_separate = message.descriptors.iter().any(|descriptor| {
                descriptor.is_negative_hits
                    || descriptor.entries.first().is_some_and(|entry| entry.key == "s")
            });
            is_atomic(daemon) && response.overall_code() == Code::OverLimit && !is_separate
        }
        Err(status) => {
            assert!(!status.message().is_empty());
            true
        }
    };
    if refuses {
        assert_eq!(state(daemon, &keys), before, "{answer:?}");
    }
}

/// There is a status for each descriptor, and a request is over its limit because one of them is.
fn check_response(response: &RateLimitResponse, message: &RateLimitRequest) {
    assert_eq!(response.statuses.len(), message.descriptors.len());
    let is_over = response.statuses.iter().any(|status| status.code() == Code::OverLimit);
    let code = if is_over { Code::OverLimit } else { Code::Ok };
    assert_eq!(response.overall_code(), code, "{response:?}");
}

async fn call_json(
    daemon: &Daemon,
    service: &EnvoyState,
    request: Request<Incoming>,
    message: &[u8],
) -> Reply {
    let keys: Vec<_> = ["a", "d"]
        .into_iter()
        .flat_map(|domain| ENTRIES.iter().map(move |entry| (domain, [*entry])))
        .flat_map(|(domain, entries)| keys(daemon, domain, &entries))
        .collect();
    let before = state(daemon, &keys);
    let reply = answer_json(&daemon.engine, service, &daemon.remote, request).await;
    let status = reply.status();
    assert!(statuses(&Method::POST, "/json").contains(&status.as_u16()), "{status}");
    let contains = |text: &[u8]| message.windows(text.len()).any(|window| window == text);
    // Refunds and shadow rules are charged on their own; `s` may be escaped.
    let is_separate = contains(b"egative") || contains(b"\"s\"") || contains(b"\\u");
    let refuses = match status {
        StatusCode::OK => false,
        StatusCode::TOO_MANY_REQUESTS => is_atomic(daemon) && !is_separate,
        _ => true,
    };
    if refuses {
        assert_eq!(state(daemon, &keys), before, "{status}");
    }
    if matches!(status, StatusCode::OK | StatusCode::TOO_MANY_REQUESTS) {
        let json: serde_json::Value =
            serde_json::from_slice(&body(&reply).await).expect("the body is JSON");
        assert!(json["overallCode"].is_string(), "{json}");
    }
    reply
}

fn is_atomic(daemon: &Daemon) -> bool {
    daemon.engine.active().envoy.charging == Charging::Atomic
}

/// The key of a descriptor, if a rule or a policy limits it.
fn keys(daemon: &Daemon, domain: &str, entries: &[(&str, &str)]) -> Option<(Policy, String)> {
    let active = daemon.engine.active();
    match active.domains.find(domain, entries) {
        Lookup::Rule(matched) => Some((matched.rule.policy()?.clone(), matched.key)),
        Lookup::UnknownDomain => {
            let policy = active.policies.get(domain).ok()?;
            Some((Policy::clone(policy), key(None, entries, &[], None).ok()?))
        }
        Lookup::NoRule | Lookup::KeyTooLong(_) => None,
    }
}

fn state(daemon: &Daemon, keys: &[(Policy, String)]) -> State {
    daemon.state(keys.iter().map(|(policy, key)| (policy, key.as_bytes())))
}

fn service(charging: Charging) -> Service {
    let mut config = Config::from_yaml(CONFIG).expect("the configuration is valid");
    config.envoy.charging = charging;
    let options = ReadOptions { charging, ..ReadOptions::default() };
    let source = Source::new("descriptors.yaml", DESCRIPTORS);
    let domains = Domains::from_yaml(&[source], &options).expect("the descriptors are valid");
    (config, Arc::new(domains))
}
