//! Health, as probes and gateways ask for it.

use rustix::process::Signal;
use tollgate_testkit::{Port, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::basic::folder;
use crate::client;
use crate::process::{Folder, Ratelimit, get};

/// What the health service says of `ratelimit`.
async fn grpc(ratelimit: &Ratelimit) -> ServingStatus {
    let mut health = HealthClient::new(client::channel(ratelimit.grpc()).await);
    let request = HealthCheckRequest { service: "ratelimit".to_owned() };
    health.check(request).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_to_stop_is_told_at_once() {
    let folder = folder();
    let ratelimit = folder.start(&[("BACKEND_TYPE", "memory")]);
    assert_eq!(get(ratelimit.http(), "/healthcheck"), (200, "OK".to_owned()));
    assert_eq!(grpc(&ratelimit).await, ServingStatus::Serving);
    ratelimit.signal(Signal::TERM);
    ratelimit.wait_for_health(500);
    // It still responds, so that clients learn that it is unhealthy.
    assert_eq!(grpc(&ratelimit).await, ServingStatus::NotServing);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::ask(&mut client, "basic | key1=v").await, "OK | OK 50/SECOND 49");
    ratelimit.signal(Signal::TERM);
    assert_eq!(ratelimit.ended(), Some(128 + Signal::TERM.as_raw()));
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_not_healthy_before_redis_was_there() {
    let port = Port::reserve();
    let address = format!("127.0.0.1:{}", port.number());
    let folder = folder();
    let variables = [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*address)];
    let ratelimit = folder.start(&variables);
    assert!(ratelimit.greeting.contains("store             redis://127.0.0.1:"));
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 500);
    assert_eq!(grpc(&ratelimit).await, ServingStatus::NotServing);
}

#[test]
fn redis_may_go_again_unless_it_is_said_to_matter() {
    for (needs, status) in [("false", 200), ("true", 500)] {
        let server = Server::start();
        let folder = folder();
        let ratelimit = folder.start(&[
            ("REDIS_URL", &*server.address()),
            ("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", needs),
            ("USE_PROMETHEUS", "true"),
            ("PROMETHEUS_ADDR", "127.0.0.1:0"),
        ]);
        ratelimit.wait_for_health(200);
        server.kill();
        while !get(ratelimit.at("metrics"), "/metrics").1.contains("\ntollgate_store_up 0\n") {
            std::thread::yield_now();
        }
        assert_eq!(get(ratelimit.http(), "/healthcheck").0, status, "needs: {needs}");
    }
}

#[test]
fn a_domain_may_be_needed() {
    let folder = Folder::new();
    let ratelimit = folder
        .start(&[("BACKEND_TYPE", "memory"), ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true")]);
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 500);
    folder.limits("one.yaml", "domain: one\ndescriptors: [{ key: k }]\n");
    ratelimit.wait_for_health(200);
    std::fs::remove_file(folder.path().join("config/one.yaml")).unwrap();
    ratelimit.wait_for_health(500);
}
