//! Requests and responses on a stream.

use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryResponse;
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::protobuf::value::Kind;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::configurations::{config, one};
use super::control_plane::{ControlPlane, TYPE_URL};
use super::{open, options, start, start_configured, start_with_options, wait_for_readiness};
use crate::envoy::client::channel;
use crate::envoy::{assert_response, check_all};
use crate::metrics::{assert_values, page};
use crate::support::daemon::Daemon;

#[tokio::test]
async fn requests_identify_the_daemon_and_the_resource_type() {
    let mut plane = ControlPlane::start().await;
    let mut options = options(&plane, |_| {});
    options = options.header("authorization", "s3cret").unwrap();
    options.node_id = "edge".to_owned();
    options.metadata = [("zone".to_owned(), "b".to_owned())].into();
    let _daemon = start_with_options(&plane, |current| *current = options).await;
    let mut session = plane.session().await;
    assert_eq!(session.headers.get("authorization").unwrap(), "s3cret");
    let request = session.request().await;
    assert_eq!((&*request.type_url, request.resource_names.len()), (TYPE_URL, 0));
    assert_eq!((&*request.version_info, &*request.response_nonce), ("", ""));
    let node = request.node.unwrap();
    assert_eq!((&*node.id, &*node.user_agent_name), ("edge", "tollgate"));
    let version = UserAgentVersionType::UserAgentVersion(env!("CARGO_PKG_VERSION").to_owned());
    assert_eq!(node.user_agent_version_type, Some(version));
    let zone = node.metadata.unwrap().fields.remove("zone").unwrap();
    assert_eq!(zone.kind, Some(Kind::StringValue("b".to_owned())));
}

#[tokio::test]
async fn the_daemon_is_not_ready_before_the_first_configuration() {
    let mut plane = ControlPlane::start().await;
    let daemon = start(&plane).await;
    let mut session = open(&mut plane).await;
    wait_for_readiness(&daemon, 503, "[-] discovery: no configuration received").await;
    assert_eq!(health(&daemon).await, ServingStatus::NotServing);
    assert_response(&daemon, "foo | k1=v1", "Unknown: no rate limit configuration loaded").await;
    session.push_valid("1", Vec::new()).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
    assert_eq!(health(&daemon).await, ServingStatus::Serving);
    assert_response(&daemon, "foo | k1=v1", "OK | OK - 0 -").await;
}

async fn health(daemon: &Daemon) -> ServingStatus {
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    let service = "ratelimit".to_owned();
    let response = client.check(HealthCheckRequest { service }).await.unwrap();
    response.into_inner().status()
}

#[tokio::test]
async fn invalid_resources_are_rejected_and_limits_stay_active() {
    let (_plane, daemon, mut session) = start_configured().await;
    let garbage = Any { type_url: TYPE_URL.to_owned(), value: vec![0xff; 64] };
    let other = Any { type_url: "type.googleapis.com/other".to_owned(), value: Vec::new() };
    for (turn, (resource, reason)) in [
        (config("foo", "", Vec::new()), "config file cannot have empty domain"),
        (one("foo", "=v1 3/DAY").remove(0), "descriptor has empty key"),
        (garbage, "resource 1 cannot be read"),
        (other, "resource 1 is of \"type.googleapis.com/other\""),
    ]
    .into_iter()
    .enumerate()
    {
        let resources = [one("bar", "k1=v1 9/DAY"), vec![resource]].concat();
        let message = session.push_invalid(&format!("bad {turn}"), resources).await;
        assert!(message.contains(reason), "{message}");
        wait_for_readiness(&daemon, 200, reason).await;
    }
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK 3/DAY 2 33200s
        > bar | k1=v1
        < OK | OK - 0 -
    ",
    )
    .await;
    session.push_valid("2", one("bar", "k1=v1 9/DAY")).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
    assert_values(
        &page(&daemon).await,
        &[
            ("tollgate_xds_updates_total{result=\"success\"}", "2"),
            ("tollgate_xds_updates_total{result=\"failure\"}", "4"),
            ("tollgate_xds_connected", "1"),
        ],
    );
}

#[tokio::test]
async fn repeated_invalid_resources_are_rejected_until_a_valid_version_arrives() {
    let mut plane = ControlPlane::start().await;
    let daemon = start(&plane).await;
    let mut session = open(&mut plane).await;
    for _ in 0..5 {
        session.push_invalid("1", vec![config("foo", "", Vec::new())]).await;
    }
    session.push_valid("2", one("foo", "k1=v1 3/DAY")).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
}

#[tokio::test]
async fn responses_of_another_type_change_nothing() {
    let (_plane, daemon, mut session) = start_configured().await;
    let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned();
    session.respond(DiscoveryResponse { type_url, ..DiscoveryResponse::default() }).await;
    session.push_valid("2", one("foo", "k1=v1 4/DAY")).await;
    assert_response(&daemon, "foo | k1=v1", "OK | OK 4/DAY 3 33200s").await;
}
