//! Gateways and their upstream.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;

use tollgate_testkit::{Gateway, GatewayKind, Port, Upstream};

/// Files of a gateway that forwards all requests.
fn files(kind: GatewayKind, port: u16, upstream: &str) -> Vec<(&'static str, String)> {
    let (name, text) = match kind {
        GatewayKind::Nginx => (
            "pass.conf",
            format!("server {{ listen {port}; location / {{ proxy_pass http://{upstream}; }} }}\n"),
        ),
        GatewayKind::Caddy => {
            ("Caddyfile", format!("http://:{port} {{\n\treverse_proxy {upstream}\n}}\n"))
        }
        GatewayKind::Haproxy => (
            "pass.cfg",
            format!(
                "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  \
                 timeout server 5s\nlisten pass\n  bind :{port}\n  server app {upstream}\n"
            ),
        ),
        GatewayKind::Envoy => ("pass.yaml", envoy(port, upstream)),
        GatewayKind::Traefik => {
            let main = format!(
                "entryPoints: {{ web: {{ address: \":{port}\" }} }}\n\
                 providers:\n  file:\n    filename: dynamic.yaml\n"
            );
            let routes = format!(
                "http:\n  routers: {{ app: {{ rule: \"PathPrefix(`/`)\", service: app }} }}\n  \
                 services:\n    app: {{ loadBalancer: {{ servers: [{{ url: \"http://{upstream}\" }}] }} }}\n"
            );
            return vec![("traefik.yaml", main), ("dynamic.yaml", routes)];
        }
    };
    vec![(name, text)]
}

/// As JSON, which is also YAML.
#[expect(clippy::unwrap_used, reason = "it is part of the tests")]
fn envoy(port: u16, upstream: &str) -> String {
    let (host, upstream_port) = upstream.split_once(':').unwrap();
    let address = |host: &str, port: &str| {
        format!(r#""address":{{"socket_address":{{"address":"{host}","port_value":{port}}}}}"#)
    };
    let http = "type.googleapis.com/envoy.extensions.filters";
    format!(
        r#"{{"static_resources":{{"listeners":[{{{listen},"filter_chains":[{{"filters":[{{
        "name":"http","typed_config":{{
        "@type":"{http}.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix":"pass","http_filters":[{{"name":"router","typed_config":{{
        "@type":"{http}.http.router.v3.Router"}}}}],
        "route_config":{{"virtual_hosts":[{{"name":"app","domains":["*"],
        "routes":[{{"match":{{"prefix":"/"}},"route":{{"cluster":"app"}}}}]}}]}}}}}}]}}]}}],
        "clusters":[{{"name":"app","load_assignment":{{"cluster_name":"app",
        "endpoints":[{{"lb_endpoints":[{{"endpoint":{{{app}}}}}]}}]}}}}]}}}}"#,
        listen = address("127.0.0.1", &port.to_string()),
        app = address(host, upstream_port),
    )
}

/// A request passes; dropping the gateway ends the process and frees its port.
#[expect(clippy::panic, clippy::unwrap_used, reason = "it is part of the tests")]
fn check(kind: GatewayKind) {
    if !kind.is_installed() {
        return;
    }
    let (port, upstream) = (Port::reserve(), Upstream::start());
    let files = files(kind, port.number(), &upstream.address());
    let gateway = Gateway::start(kind, &files, &port);
    // The request that showed that it is ready.
    upstream.take();
    let process = format!("/proc/{}", gateway.pid());
    let is_running = || Path::new(&process).exists();
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).unwrap();
    let request = "POST /a/../b?c=%2F HTTP/1.1\r\nHost: t\r\nX-A: 1\r\nX-A: 2\r\n\
                   Content-Length: 4\r\nConnection: close\r\n\r\nbody";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let [reached] = &upstream.take()[..] else { panic!("it did not arrive once") };
    assert_eq!((&*reached.method, &*reached.body), ("POST", b"body".as_slice()));
    assert!(reached.uri.ends_with("b?c=%2F"), "{}", reached.uri);
    assert_eq!(reached.headers.get_all("x-a").iter().count(), 2, "{:?}", reached.headers);
    assert!(is_running());
    drop(gateway);
    assert!(!is_running(), "{kind:?} outlives its gateway");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).is_err());
}

#[test]
fn nginx_forwards_requests_and_ends_on_drop() {
    check(GatewayKind::Nginx);
}

#[test]
fn caddy_forwards_requests_and_ends_on_drop() {
    check(GatewayKind::Caddy);
}

#[test]
fn haproxy_forwards_requests_and_ends_on_drop() {
    check(GatewayKind::Haproxy);
}

#[test]
fn envoy_forwards_requests_and_ends_on_drop() {
    check(GatewayKind::Envoy);
}

#[test]
fn traefik_forwards_requests_and_ends_on_drop() {
    check(GatewayKind::Traefik);
}

#[test]
#[should_panic = "exited; its log:"]
fn gateway_that_does_not_start_panics_with_its_log() {
    if !GatewayKind::Nginx.is_installed() {
        panic!("it exited; its log: none, it is not installed");
    }
    Gateway::start(GatewayKind::Nginx, &[("bad.conf", "nonsense;\n".to_owned())], &Port::reserve());
}
