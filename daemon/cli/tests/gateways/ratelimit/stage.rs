//! Envoy with its rate limit filter before two applications, and the daemon that it asks.

use std::fs;
use std::path::PathBuf;

use tollgate_testkit::{Gateway, GatewayKind, Port, Upstream};

use crate::client::{Answer, Client};
use crate::daemon::Daemon;
use crate::stage::folder;

/// All of them, each on a port of its own.
#[derive(Debug)]
pub(super) struct Stage {
    _gateway: Gateway,
    pub(super) daemon: Daemon,
    pub(super) upstreams: [Upstream; 2],
    port: Port,
    _ports: [Port; 2],
    folder: PathBuf,
}

impl Stage {
    pub(super) fn new(charging: &str) -> Self {
        Self::with(charging, false)
    }

    /// With what is charged, and whether Envoy refuses what is not decided.
    pub(super) fn with(charging: &str, is_closed: bool) -> Self {
        let folder = folder();
        let config = format!(
            "envoy: {{ config: limits.yaml, charging: {charging}, dynamic_metadata: true }}\n"
        );
        fs::write(folder.join("limits.yaml"), include_str!("limits.yaml")).unwrap();
        let path = folder.join("tollgate.yaml");
        fs::write(&path, config).unwrap();
        let (http, grpc) = (Port::reserve(), Port::reserve());
        let daemon = Daemon::start_for_envoy(&path, http.number(), grpc.number());
        let upstreams = [Upstream::start(), Upstream::start()];
        let port = Port::reserve();
        let [first, second] = upstreams.each_ref().map(|each_ref| port_of(&each_ref.address()));
        let places = [
            ("<port>", port.number().to_string()),
            ("<grpc>", grpc.number().to_string()),
            ("<closed>", is_closed.to_string()),
            ("<first>", first),
            ("<second>", second),
        ];
        let text = include_str!("envoy.yaml").to_owned();
        let text = places.iter().fold(text, |text, (place, value)| text.replace(place, value));
        let gateway = Gateway::start(GatewayKind::Envoy, &[("envoy.yaml", text)], &port);
        Self { _gateway: gateway, daemon, upstreams, port, _ports: [http, grpc], folder }
    }

    /// Asks for a path with headers: `/two who=a plan=basic`.
    pub(super) fn ask(&self, line: &str) -> Answer {
        let mut words = line.split(' ');
        let first = format!("GET {}", words.next().unwrap());
        let headers: Vec<_> = words.map(|word| word.replacen('=', ": ", 1)).collect();
        let headers: Vec<_> = headers.iter().map(String::as_str).collect();
        Client::connect(1, self.port.number()).send(&first, &headers, "")
    }

    /// Which of the applications have been reached since this was last asked, each how often.
    pub(super) fn reached(&self) -> [usize; 2] {
        self.upstreams.each_ref().map(|each_ref| each_ref.take().len())
    }
}

fn port_of(address: &str) -> String {
    address.rsplit_once(':').unwrap().1.to_owned()
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder that stays is a nuisance, but no reason to fail a test.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
