//! Hash tags on the URL of a single server: for a proxy that distributes keys over several servers.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod support;

use support::{CHECK, check, decide, named, open_with, policy, remaining};
use tollgate_algorithms::{Check, Cost};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_testkit::{Gateway, GatewayKind, Port, Server};

/// Opens a store with hash tags.
fn open(url: &str) -> RedisStore {
    open_with(url, |options| RedisOptions { groups: Some(16), ..options })
}

/// The configuration of Envoy's Redis proxy, which distributes keys by their hash tags.
fn envoy(port: &Port, servers: &[Server]) -> String {
    let endpoints: String = servers
        .iter()
        .map(|server| {
            format!(
                "        - endpoint: {{ address: {{ socket_address: \
                 {{ address: 127.0.0.1, port_value: {} }} }} }}\n",
                server.port()
            )
        })
        .collect();
    format!(
        "static_resources:
  listeners:
  - address: {{ socket_address: {{ address: 127.0.0.1, port_value: {} }} }}
    filter_chains:
    - filters:
      - name: envoy.filters.network.redis_proxy
        typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
          stat_prefix: redis
          settings: {{ op_timeout: 5s, enable_hashtagging: true }}
          prefix_routes: {{ catch_all_route: {{ cluster: redis }} }}
  clusters:
  - name: redis
    type: STATIC
    lb_policy: MAGLEV
    load_assignment:
      cluster_name: redis
      endpoints:
      - lb_endpoints:
{endpoints}",
        port.number()
    )
}

/// Checks many keys, alone and together, and flushes the scripts of the servers midway.
async fn assert_limits_are_exact(store: &RedisStore, servers: &[Server]) {
    let two = policy("2/d fixed");
    let keys: Vec<String> = (0..100).map(|n| format!("{n}:key")).collect();
    for round in 0..3 {
        for key in &keys {
            let decision = check(store, &two, key.as_bytes()).await.unwrap();
            assert_eq!(decision.allowed, round < 2, "{key}");
        }
        for server in servers {
            server.command(&["SCRIPT", "FLUSH"]).expect_no_error("flush");
        }
    }
    // These checks are in several partitions.
    let (log, few) = (named("log", "1000/d log"), named("few", "2/d fixed"));
    for round in 1..=3 {
        let at = |policy, key| Check { policy, key, cost: Cost::ONE };
        let checks = [at(&log, &b"a"[..]), at(&few, b"b"), at(&log, b"c")];
        let answer = decide(store, CHECK, &checks, None).await.unwrap();
        assert_eq!(answer.allowed(), round <= 2, "{answer:?}");
        for key in [b"a", b"c"] {
            assert_eq!(remaining(store, &log, key).await, 1_000 - round.min(2));
        }
    }
    for _ in 0..300 {
        let _ = check(store, &log, b"long").await.unwrap();
    }
    assert_eq!(remaining(store, &log, b"long").await, 700);
    assert!(store.stats().errors.is_empty(), "{:?}", store.stats());
}

#[tokio::test]
async fn keys_on_a_single_server_have_hash_tags() {
    let server = Server::start();
    let store = open(&server.url());
    assert_limits_are_exact(&store, std::slice::from_ref(&server)).await;
    let keys = server.keys("");
    assert!(!keys.is_empty() && keys.iter().all(|key| key.starts_with("tollgate:{")), "{keys:?}");
}

#[tokio::test]
async fn a_sharding_proxy_routes_calls_with_several_keys() {
    if !GatewayKind::Envoy.is_installed() {
        return;
    }
    let servers = [Server::start(), Server::start(), Server::start()];
    let port = Port::reserve();
    let file = ("envoy.yaml", envoy(&port, &servers));
    let _proxy = Gateway::start(GatewayKind::Envoy, &[file], &port);
    let store = open(&format!("redis://127.0.0.1:{}", port.number()));
    store.ready().await.unwrap();
    assert_limits_are_exact(&store, &servers).await;
    assert!(servers.iter().all(|server| !server.keys("tollgate").is_empty()));
}
