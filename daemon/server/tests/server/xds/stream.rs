//! What is said on a stream.

use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryResponse;
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::protobuf::value::Kind;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::configs::{config, one};
use super::plane::{Plane, TYPE_URL};
use super::{options, start, start_changed, until_ready};
use crate::daemon::Daemon;
use crate::rls::check_all;
use crate::rls::client::channel;

#[tokio::test]
async fn the_daemon_says_who_it_is_and_what_it_wants() {
    let mut plane = Plane::start().await;
    let mut told = options(&plane, |_| {});
    told = told.header("authorization", "s3cret").unwrap();
    told.node_id = "edge".to_owned();
    told.metadata = [("zone".to_owned(), "b".to_owned())].into();
    let _daemon = start_changed(&plane, |x| *x = told).await;
    let mut session = plane.session().await;
    assert_eq!(session.headers.get("authorization").unwrap(), "s3cret");
    let asked = session.request().await;
    assert_eq!((&*asked.type_url, asked.resource_names.len()), (TYPE_URL, 0));
    assert_eq!((&*asked.version_info, &*asked.response_nonce), ("", ""));
    let node = asked.node.unwrap();
    assert_eq!((&*node.id, &*node.user_agent_name), ("edge", "tollgate"));
    let version = UserAgentVersionType::UserAgentVersion(env!("CARGO_PKG_VERSION").to_owned());
    assert_eq!(node.user_agent_version_type, Some(version));
    let zone = node.metadata.unwrap().fields.remove("zone").unwrap();
    assert_eq!(zone.kind, Some(Kind::StringValue("b".to_owned())));
}

#[tokio::test]
async fn nothing_is_decided_and_nobody_is_sent_before_limits_are_known() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    until_ready(&daemon, 503, "[-] discovery: no configuration received").await;
    assert_eq!(health(&daemon).await, ServingStatus::NotServing);
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < Unknown: no rate limit configuration loaded
    ",
    )
    .await;
    session.push_good("1", Vec::new()).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
    assert_eq!(health(&daemon).await, ServingStatus::Serving);
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK - 0 -
    ",
    )
    .await;
}

async fn health(daemon: &Daemon) -> ServingStatus {
    let mut client = HealthClient::new(channel(daemon.grpc).await);
    let service = "ratelimit".to_owned();
    let said = client.check(HealthCheckRequest { service }).await.unwrap();
    said.into_inner().status()
}

#[tokio::test]
async fn what_cannot_be_used_is_refused_and_what_held_stays() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    let garbage = Any { type_url: TYPE_URL.to_owned(), value: vec![0xff; 64] };
    let other = Any { type_url: "type.googleapis.com/other".to_owned(), value: Vec::new() };
    for (turn, (resource, why)) in [
        (config("foo", "", Vec::new()), "config file cannot have empty domain"),
        (one("foo", "=v1 3/DAY").remove(0), "descriptor has empty key"),
        (garbage, "resource 1 cannot be read"),
        (other, "resource 1 is of \"type.googleapis.com/other\""),
    ]
    .into_iter()
    .enumerate()
    {
        let resources = [one("bar", "k1=v1 9/DAY"), vec![resource]].concat();
        let said = session.push_bad(&format!("bad {turn}"), resources).await;
        assert!(said.contains(why), "{said}");
        until_ready(&daemon, 200, why).await;
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
    session.push_good("2", one("bar", "k1=v1 9/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
    let page = crate::metrics::scrape(daemon.scraped, "").await.body;
    for line in [
        "tollgate_xds_updates_total{result=\"success\"} 2",
        "tollgate_xds_updates_total{result=\"failure\"} 4",
        "tollgate_xds_connected 1",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
}

#[tokio::test]
async fn a_server_that_repeats_what_is_refused_is_refused_each_time_and_heard_when_it_mends() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    for _ in 0..5 {
        session.push_bad("1", vec![config("foo", "", Vec::new())]).await;
    }
    session.push_good("2", one("foo", "k1=v1 3/DAY")).await;
    until_ready(&daemon, 200, "[+] discovery ok").await;
}

#[tokio::test]
async fn an_answer_that_was_not_asked_for_changes_nothing() {
    let mut plane = Plane::start().await;
    let daemon = start(&plane).await;
    let mut session = plane.session().await;
    session.request().await;
    session.push_good("1", one("foo", "k1=v1 3/DAY")).await;
    let type_url = "type.googleapis.com/envoy.config.cluster.v3.Cluster".to_owned();
    session.answer(DiscoveryResponse { type_url, ..DiscoveryResponse::default() }).await;
    session.push_good("2", one("foo", "k1=v1 4/DAY")).await;
    check_all(
        &daemon,
        "
        > foo | k1=v1
        < OK | OK 4/DAY 3 33200s
    ",
    )
    .await;
}
