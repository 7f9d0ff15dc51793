//! Requests and responses on a stream, and connections that end or stop responding.

use std::net::SocketAddr;
use std::time::Duration;

use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::service::discovery::v3::DiscoveryResponse;
use envoy_types::pb::google::protobuf::Any;
use envoy_types::pb::google::protobuf::value::Kind;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::Status;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::control_plane::{ControlPlane, TYPE_URL};
use super::{
    config, one, open, open_and_push, options, start, start_configured, start_with_options,
    wait_for_readiness,
};
use crate::envoy::assert_response;
use crate::envoy::client::channel;
use crate::metrics::{assert_lines, page};
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
    let (_plane, daemon, mut session) = start().await;
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
        (garbage, "resource 1 cannot be decoded"),
        (other, "resource 1 has the type \"type.googleapis.com/other\""),
    ]
    .into_iter()
    .enumerate()
    {
        let resources = [one("bar", "k1=v1 9/DAY"), vec![resource]].concat();
        let message = session.push_invalid(&format!("bad {turn}"), resources).await;
        assert!(message.contains(reason), "{message}");
        wait_for_readiness(&daemon, 200, reason).await;
    }
    assert_response(&daemon, "foo | k1=v1", "OK | OK 3/DAY 2 33200s").await;
    assert_response(&daemon, "bar | k1=v1", "OK | OK - 0 -").await;
    session.push_valid("2", one("bar", "k1=v1 9/DAY")).await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
    let lines = r#"
tollgate_xds_updates_total{result="success"} 2
tollgate_xds_updates_total{result="failure"} 4
tollgate_xds_connected 1
"#;
    assert_lines(&page(&daemon).await, lines);
}

#[tokio::test]
async fn repeated_invalid_resources_are_rejected_until_a_valid_version_arrives() {
    let (_plane, daemon, mut session) = start().await;
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

#[tokio::test]
async fn ended_streams_are_reopened_and_limits_stay_active() {
    let (mut plane, daemon, mut session) = start_configured().await;
    for turn in 0..4 {
        match turn % 2 {
            0 => drop(session),
            _ => session.fail(Status::resource_exhausted("come back later")).await,
        }
        session = plane.session().await;
        let request = session.request().await;
        // A new stream starts without a version.
        assert_eq!((&*request.version_info, &*request.response_nonce), ("", ""));
        session.push_valid("1", one("foo", "k1=v1 3/DAY")).await;
    }
    assert_response(&daemon, "foo | k1=v1", "OK | OK 3/DAY 2 33200s").await;
}

#[tokio::test]
async fn a_restarted_server_may_reuse_a_version_for_other_limits() {
    let (plane, daemon, session) = start_configured().await;
    let address = plane.address;
    drop((session, plane));
    // It is still ready, because the limits stay active.
    wait_for_readiness(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    assert_response(&daemon, "foo | k1=v1", "OK | OK 3/DAY 2 33200s").await;
    let mut plane = ControlPlane::start_at(address, None).await;
    let _session = open_and_push(&mut plane, "1", "k1=v1 4/DAY").await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
    assert_response(&daemon, "foo | k1=v1", "OK | OK 4/DAY 2 33200s").await;
}

#[tokio::test]
async fn oversized_responses_are_reported_and_the_stream_is_reopened() {
    let mut plane = ControlPlane::start().await;
    let daemon = start_with_options(&plane, |options| options.max_message = 1_000).await;
    let session = open(&mut plane).await;
    session.push("1", one("foo", &format!("k1={} 3/DAY", "v".repeat(1_000)))).await;
    let mut session = plane.session().await;
    wait_for_readiness(&daemon, 503, "is reconnected, without a configuration since: OutOfRange: ")
        .await;
    session.request().await;
    session.push_valid("2", one("foo", "k1=v1 3/DAY")).await;
}

#[tokio::test]
async fn half_open_connections_are_closed() {
    let mut plane = ControlPlane::start().await;
    let proxy = Proxy::start(plane.address).await;
    let daemon = start_with_options(&plane, |options| {
        options.server = proxy.address.to_string();
        options.ping_every = Duration::from_millis(50);
        options.ping_timeout = Duration::from_millis(200);
    })
    .await;
    let _session = open_and_push(&mut plane, "1", "k1=v1 3/DAY").await;
    proxy.is_blocked.send_replace(true);
    wait_for_readiness(&daemon, 200, "[-] discovery: 127.0.0.1").await;
    proxy.is_blocked.send_replace(false);
    let _session = open_and_push(&mut plane, "2", "k1=v1 4/DAY").await;
    wait_for_readiness(&daemon, 200, "[+] discovery ok").await;
}

/// A proxy that can block: it then forwards nothing and closes nothing. New connections are
/// accepted and forwarded once it is unblocked.
struct Proxy {
    address: SocketAddr,
    is_blocked: watch::Sender<bool>,
}

impl Proxy {
    async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (is_blocked, receiver) = watch::channel(false);
        tokio::spawn(async move {
            loop {
                let (peer, _) = listener.accept().await.unwrap();
                tokio::spawn(forward(peer, server, receiver.clone()));
            }
        });
        Proxy { address, is_blocked }
    }
}

async fn forward(mut peer: TcpStream, server: SocketAddr, mut is_blocked: watch::Receiver<bool>) {
    is_blocked.wait_for(|is_blocked| !is_blocked).await.map(drop).unwrap();
    let mut server = TcpStream::connect(server).await.unwrap();
    tokio::select! {
        _ = copy_bidirectional(&mut peer, &mut server) => {}
        () = async { is_blocked.wait_for(|is_blocked| *is_blocked).await.map(drop).unwrap() } => {
            // Keeps the connections open, so that neither end notices.
            std::future::pending::<()>().await;
        }
    }
}
