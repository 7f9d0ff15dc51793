//! Health checks over HTTP and gRPC.

use rustix::process::Signal;
use tollgate_testkit::{Port, Server};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::basic::installation;
use crate::client;
use crate::installation::{Installation, Ratelimit, get};

/// The status of `ratelimit` in the health service.
async fn grpc(ratelimit: &Ratelimit) -> ServingStatus {
    let mut health = HealthClient::new(client::channel(ratelimit.grpc()).await);
    let request = HealthCheckRequest { service: "ratelimit".to_owned() };
    health.check(request).await.unwrap().into_inner().status()
}

#[tokio::test(flavor = "multi_thread")]
async fn health_check_fails_after_the_first_signal() {
    let installation = installation();
    let ratelimit = installation.start(&[("BACKEND_TYPE", "memory")]);
    assert_eq!(get(ratelimit.http(), "/healthcheck"), (200, "OK".to_owned()));
    assert_eq!(grpc(&ratelimit).await, ServingStatus::Serving);
    ratelimit.daemon.signal(Signal::TERM);
    ratelimit.wait_for_health(500);
    // The service still responds, so that clients see that it is unhealthy.
    assert_eq!(grpc(&ratelimit).await, ServingStatus::NotServing);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::call(&mut client, "basic | key1=v").await, "OK | OK 50/SECOND 49");
    ratelimit.daemon.signal(Signal::TERM);
    assert_eq!(ratelimit.daemon.wait(), Some(128 + Signal::TERM.as_raw()));
}

#[tokio::test(flavor = "multi_thread")]
async fn health_check_fails_until_redis_is_reachable() {
    let port = Port::reserve();
    let address = format!("127.0.0.1:{}", port.number());
    let installation = installation();
    let variables = [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*address)];
    let ratelimit = installation.start(&variables);
    assert!(ratelimit.daemon.greeting.contains("store             redis://127.0.0.1:"));
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 500);
    assert_eq!(grpc(&ratelimit).await, ServingStatus::NotServing);
}

#[test]
fn loss_of_redis_is_unhealthy_only_if_configured() {
    for (needs, status) in [("false", 200), ("true", 500)] {
        let server = Server::start();
        let installation = installation();
        let ratelimit = installation.start(&[
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
fn health_check_needs_a_domain_if_configured() {
    let installation = Installation::new();
    let ratelimit = installation
        .start(&[("BACKEND_TYPE", "memory"), ("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", "true")]);
    assert_eq!(get(ratelimit.http(), "/healthcheck").0, 500);
    installation.limits("one.yaml", "domain: one\ndescriptors: [{ key: k }]\n");
    ratelimit.wait_for_health(200);
    std::fs::remove_file(installation.path().join("config/one.yaml")).unwrap();
    ratelimit.wait_for_health(500);
}
