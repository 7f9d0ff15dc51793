//! The scenarios of [`crate::basic`] on real servers.

use tollgate_testkit::{Cluster, Sentinel, Server};

use crate::basic::{check, installation};
use crate::client;

/// Checks the scenarios on the server of these variables.
async fn check_on(variables: &[(&str, &str)]) {
    let installation = installation();
    // A long timeout tolerates a busy machine.
    let variables = [variables, &[("REDIS_TIMEOUT", "10s")]].concat();
    let ratelimit = installation.start(&variables);
    ratelimit.wait_for_health(200);
    check(&ratelimit, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn single_server_has_the_same_responses() {
    let server = Server::start();
    check_on(&[("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &server.address())]).await;
    assert!(!server.keys("tollgate").is_empty(), "the state is on the server");
}

/// envoyproxy/ratelimit returns an error, on which `failure_mode_deny` in Envoy relies.
#[tokio::test(flavor = "multi_thread")]
async fn limited_call_is_an_error_while_the_server_is_unavailable() {
    let server = Server::start();
    let installation = installation();
    let ratelimit =
        installation.start(&[("REDIS_URL", &*server.address()), ("REDIS_TIMEOUT", "10s")]);
    ratelimit.wait_for_health(200);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::call(&mut client, "another | key2=v").await, "OK | OK 20/DAY 19");
    server.kill();
    for (request, expected) in [
        ("another | key2=v", "Unknown: store unavailable"),
        ("another | other=v | key2=v", "Unknown: store unavailable"),
        ("another | other=v", "OK | OK"),
        ("unknown | key2=v", "OK | OK"),
    ] {
        assert_eq!(client::call(&mut client, request).await, expected, "{request}");
    }
    assert_eq!(ratelimit.stat("ratelimit.service.call.should_rate_limit.redis_error"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_on_a_unix_socket_has_the_same_responses() {
    let server = Server::start();
    let path = server.unix_path().display().to_string();
    let variables = [
        ("REDIS_SOCKET_TYPE", "unix"),
        ("REDIS_URL", &*path),
        ("CACHE_KEY_PREFIX", "shop:"),
        ("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", "false"),
    ];
    check_on(&variables).await;
    assert!(!server.keys("shop-").is_empty(), "the prefix is the namespace");
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_a_password_has_the_same_responses() {
    let server = Server::with(|config| config.password("s3cret"));
    let variables =
        [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*server.address()), ("REDIS_AUTH", "s3cret")];
    check_on(&variables).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn server_with_tls_has_the_same_responses() {
    let server = Server::with(|config| config.tls_auth_clients("yes"));
    let path = |path: std::path::PathBuf| path.display().to_string();
    let variables = [
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", &*server.address()),
        ("REDIS_TLS", "true"),
        ("REDIS_TLS_CACERT", &path(server.ca_path())),
        ("REDIS_TLS_CLIENT_CERT", &path(server.client_cert_path())),
        ("REDIS_TLS_CLIENT_KEY", &path(server.client_key_path())),
    ];
    check_on(&variables).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_has_the_same_responses() {
    let cluster = Cluster::start(3, 0);
    let nodes: Vec<_> = cluster.nodes().iter().map(Server::address).collect();
    check_on(&[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", &nodes.join(","))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels_have_the_same_responses() {
    let sentinel = Sentinel::start();
    let sentinels: Vec<_> = sentinel.sentinels().iter().map(Server::address).collect();
    let url = format!("mymaster,{}", sentinels.join(","));
    check_on(&[("REDIS_TYPE", "SENTINEL"), ("REDIS_URL", &url)]).await;
}
