//! The same on real servers, by the variables that name them.

use tollgate_testkit::{Cluster, Sentinel, Server};

use crate::basic::{check, folder};
use crate::client;

/// Answers as on memory, whichever server these variables name.
async fn check_on(variables: &[(&str, &str)]) {
    let folder = folder();
    // What is late on a machine that is busy with other tests is no matter here.
    let patient = [variables, &[("REDIS_TIMEOUT", "10s")]].concat();
    let ratelimit = folder.start(&patient);
    ratelimit.wait_for_health(200);
    check(&ratelimit, false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server() {
    let server = Server::start();
    check_on(&[("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &server.address())]).await;
    assert!(!server.keys("tollgate").is_empty(), "the limits are there");
}

/// envoyproxy/ratelimit returns an error, on which `failure_mode_deny` in Envoy relies.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_server_is_away_a_call_that_is_limited_is_an_error() {
    let server = Server::start();
    let folder = folder();
    let ratelimit = folder.start(&[("REDIS_URL", &*server.address()), ("REDIS_TIMEOUT", "10s")]);
    ratelimit.wait_for_health(200);
    let mut client = client::connect(ratelimit.grpc()).await;
    assert_eq!(client::ask(&mut client, "another | key2=v").await, "OK | OK 20/DAY 19");
    server.kill();
    for (request, expected) in [
        ("another | key2=v", "Unknown: store unavailable"),
        ("another | other=v | key2=v", "Unknown: store unavailable"),
        ("another | other=v", "OK | OK"),
        ("unknown | key2=v", "OK | OK"),
    ] {
        assert_eq!(client::ask(&mut client, request).await, expected, "{request}");
    }
    assert_eq!(ratelimit.stat("ratelimit.service.call.should_rate_limit.redis_error"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_server_at_a_socket() {
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
async fn a_server_that_asks_for_a_password() {
    let server = Server::with(|config| config.password("s3cret"));
    let variables =
        [("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &*server.address()), ("REDIS_AUTH", "s3cret")];
    check_on(&variables).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tls() {
    let server = Server::with(|config| config.tls_auth_clients("yes"));
    let path = |path_buf: std::path::PathBuf| path_buf.display().to_string();
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
async fn a_cluster() {
    let cluster = Cluster::start(3, 0);
    let nodes: Vec<_> = cluster.nodes().iter().map(Server::address).collect();
    check_on(&[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", &nodes.join(","))]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sentinels() {
    let sentinel = Sentinel::start();
    let sentinels: Vec<_> = sentinel.sentinels().iter().map(Server::address).collect();
    let url = format!("mymaster,{}", sentinels.join(","));
    check_on(&[("REDIS_TYPE", "SENTINEL"), ("REDIS_URL", &url)]).await;
}
