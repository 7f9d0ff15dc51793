//! Limits from a control plane.

use envoy_types::pb::ratelimit::config::ratelimit::v3::{
    RateLimitConfig, RateLimitDescriptor, RateLimitPolicy, RateLimitUnit,
};

use crate::client;
use crate::control_plane::{ControlPlane, resource};
use crate::installation::{Installation, Ratelimit, get};

fn limits(requests_per_unit: u32) -> RateLimitConfig {
    let rate_limit = RateLimitPolicy {
        requests_per_unit,
        unit: RateLimitUnit::Day.into(),
        ..RateLimitPolicy::default()
    };
    let descriptor = RateLimitDescriptor {
        key: "k".to_owned(),
        rate_limit: Some(rate_limit),
        ..RateLimitDescriptor::default()
    };
    RateLimitConfig {
        name: "shop".to_owned(),
        domain: "shop".to_owned(),
        descriptors: vec![descriptor],
    }
}

/// Starts a process that uses the control plane, with further variables.
fn start(installation: &Installation, plane: &ControlPlane, more: &[(&str, &str)]) -> Ratelimit {
    let address = plane.address.to_string();
    let variables = [
        ("BACKEND_TYPE", "memory"),
        ("CONFIG_TYPE", "GRPC_XDS_SOTW"),
        ("CONFIG_GRPC_XDS_SERVER_URL", &address),
    ];
    installation.start(&[&variables[..], more].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_the_control_plane_are_followed() {
    let mut plane = ControlPlane::start().await;
    let installation = Installation::new();
    let more = [
        ("CONFIG_GRPC_XDS_NODE_ID", "envoy-ratelimit"),
        ("CONFIG_GRPC_XDS_NODE_METADATA", "zone=a"),
        ("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", "x-who:me"),
    ];
    let ratelimit = start(&installation, &plane, &more);
    let mut session = plane.session().await;
    assert_eq!(session.headers.get("x-who").unwrap(), "me");
    let node = session.request().await.node.unwrap();
    assert_eq!(node.id, "envoy-ratelimit");
    assert!(node.metadata.unwrap().fields.contains_key("zone"));
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 500);
    let mut client = client::connect(ratelimit.grpc()).await;
    let response = client::call(&mut client, "shop | k=v").await;
    assert_eq!(response, "Unknown: no rate limit configuration loaded");
    session.push_valid("1", vec![resource(&limits(2))]).await;
    ratelimit.wait_for_health(200);
    assert_eq!(client::call(&mut client, "shop | k=v").await, "OK | OK 2/DAY 1");
    session.push_valid("2", vec![resource(&limits(5))]).await;
    assert_eq!(client::call(&mut client, "shop | k=v").await, "OK | OK 5/DAY 3");
    assert!(ratelimit.debug("/rlconfig").contains("shop.k"));
    assert_eq!(ratelimit.stat("ratelimit.service.config_load_success"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_another_window_is_logged() {
    let mut plane = ControlPlane::start().await;
    let installation = Installation::new();
    let mut ratelimit = start(&installation, &plane, &[]);
    let mut session = plane.session().await;
    session.request().await;
    let mut hourly = limits(5);
    hourly.descriptors[0].rate_limit.as_mut().unwrap().unit = RateLimitUnit::Hour.into();
    for (version, limits) in [("1", limits(2)), ("2", limits(5)), ("3", hourly)] {
        session.push_valid(version, vec![resource(&limits)]).await;
    }
    let log = ratelimit.read_log_until("starts unused");
    let warnings: Vec<_> = log.lines().filter_map(|line| line.split_once(" WARN ")).collect();
    let expected = "rule shop.k: the limit 5/h fixed count-denied starts unused for every key, \
                    because 5/d fixed count-denied has none of its kind and window";
    assert!(warnings.len() == 1 && warnings[0].1 == expected, "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn process_is_healthy_without_limits_if_configured() {
    let plane = ControlPlane::start().await;
    let installation = Installation::new();
    let more = [("FORCE_START_WITHOUT_INITIAL_CONFIG", "true")];
    let ratelimit = start(&installation, &plane, &more);
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 200);
}
