//! Connections between a gateway and the daemon.

use tollgate_testkit::{GatewayKind, Port};

use crate::relay::Relay;
use crate::stage::{Script, Stage};

/// A thousand requests of one client, most of them denied, need no more connections than it has.
fn few_connections(kind: GatewayKind) {
    if !kind.is_installed() {
        return;
    }
    let daemon_port = Port::reserve();
    let relay = Relay::to(daemon_port.number());
    let script =
        Script { relay: Some(relay.port), daemon_port: Some(daemon_port), ..Script::default() };
    let stage = Stage::with(kind, script);
    let mut client = stage.client(9);
    let mut denied = 0;
    for _ in 0..1_000 {
        denied += usize::from(client.send("GET /login", &[], "").status == 429);
    }
    assert_eq!(denied, 995);
    let connections = relay.connections();
    assert!(connections <= 4, "{connections} connections for one client");
}

#[test]
fn nginx_keeps_its_connections() {
    few_connections(GatewayKind::Nginx);
}

#[test]
fn caddy_keeps_its_connections() {
    few_connections(GatewayKind::Caddy);
}

#[test]
fn haproxy_keeps_its_connections() {
    few_connections(GatewayKind::Haproxy);
}

#[test]
fn envoy_keeps_its_connections() {
    few_connections(GatewayKind::Envoy);
}
