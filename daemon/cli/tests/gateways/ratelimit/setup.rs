//! Envoy with its rate limit filter, two applications and the daemon.

use tollgate_testkit::{Folder, Gateway, GatewayKind, Port, Upstream};

use crate::client::{Client, Response};
use crate::daemon::Daemon;

/// The running programs, each on its own port.
#[derive(Debug)]
pub(super) struct Setup {
    _gateway: Gateway,
    pub(super) daemon: Daemon,
    pub(super) upstreams: [Upstream; 2],
    port: Port,
    _ports: [Port; 2],
    _folder: Folder,
}

impl Setup {
    pub(super) fn new(charging: &str) -> Self {
        Self::with(charging, false)
    }

    /// Sets `envoy.charging`, and whether Envoy rejects requests without a decision.
    pub(super) fn with(charging: &str, fails_closed: bool) -> Self {
        let folder = Folder::create();
        let config = format!(
            "envoy: {{ config: limits.yaml, charging: {charging}, dynamic_metadata: true }}\n"
        );
        folder.write("limits.yaml", include_str!("limits.yaml"));
        let path = folder.write("tollgate.yaml", config);
        let (http, grpc) = (Port::reserve(), Port::reserve());
        let daemon = Daemon::start(&path, http.number(), Some(grpc.number()));
        let upstreams = [Upstream::start(), Upstream::start()];
        let port = Port::reserve();
        let [first, second] = upstreams.each_ref().map(|upstream| port_of(&upstream.address()));
        let values = [
            ("<port>", port.number().to_string()),
            ("<grpc>", grpc.number().to_string()),
            ("<closed>", fails_closed.to_string()),
            ("<first>", first),
            ("<second>", second),
        ];
        let text = include_str!("envoy.yaml").to_owned();
        let text =
            values.iter().fold(text, |text, (placeholder, value)| text.replace(placeholder, value));
        let gateway = Gateway::start(GatewayKind::Envoy, &[("envoy.yaml", text)], &port);
        Self { _gateway: gateway, daemon, upstreams, port, _ports: [http, grpc], _folder: folder }
    }

    /// Sends a request with a path and headers: `/two who=a plan=basic`.
    pub(super) fn request(&self, line: &str) -> Response {
        let mut words = line.split(' ');
        let first = format!("GET {}", words.next().unwrap());
        let headers: Vec<_> = words.map(|word| word.replacen('=', ": ", 1)).collect();
        let headers: Vec<_> = headers.iter().map(String::as_str).collect();
        Client::connect(1, self.port.number()).send(&first, &headers, "")
    }

    /// The number of requests that reached each application since the last call.
    pub(super) fn reached(&self) -> [usize; 2] {
        self.upstreams.each_ref().map(|upstream| upstream.take().len())
    }
}

fn port_of(address: &str) -> String {
    address.rsplit_once(':').unwrap().1.to_owned()
}
