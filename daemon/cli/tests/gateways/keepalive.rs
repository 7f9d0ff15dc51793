//! Connections between a gateway and the daemon.

use tollgate_testkit::{GatewayKind, Port};

use crate::relay::Relay;
use crate::setup::{Options, Setup};

/// A thousand requests of one client, most of them denied, use at most four connections to the daemon.
fn check_connections(kind: GatewayKind) {
    if !kind.is_installed() {
        return;
    }
    let daemon_port = Port::reserve();
    let relay = Relay::to(daemon_port.number());
    let options =
        Options { relay: Some(relay.port), daemon_port: Some(daemon_port), ..Options::default() };
    let setup = Setup::with(kind, options);
    let mut client = setup.client(9);
    let mut denied = 0;
    for _ in 0..1_000 {
        denied += usize::from(client.send("GET /login", &[], "").status == 429);
    }
    assert_eq!(denied, 995);
    let connections = relay.connections();
    assert!(connections <= 4, "{connections} connections for one client");
}

#[test]
fn nginx_reuses_its_connections() {
    check_connections(GatewayKind::Nginx);
}

#[test]
fn caddy_reuses_its_connections() {
    check_connections(GatewayKind::Caddy);
}

#[test]
fn haproxy_reuses_its_connections() {
    check_connections(GatewayKind::Haproxy);
}

#[test]
fn envoy_reuses_its_connections() {
    check_connections(GatewayKind::Envoy);
}
