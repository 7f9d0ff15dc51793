//! A gateway with the daemon and an application behind it.

use std::fs;
use std::process::Command;

use tollgate_testkit::{Folder, Gateway, GatewayKind, Port, Upstream};

use crate::client::{Client, Response};
use crate::daemon::Daemon;
use crate::init::{init, page};

/// The differences from the printed configuration.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    /// Whether the gateway has the timeouts of the printed configuration. Longer ones tolerate a
    /// busy machine.
    pub(crate) has_recipe_timeouts: bool,
    /// Whether the gateway rejects requests without a decision.
    pub(crate) fails_closed: bool,
    /// Replacements in the daemon's configuration.
    pub(crate) edits: &'a [(&'a str, &'a str)],
    /// Replacements in the gateway's files, each where its text occurs.
    pub(crate) gateway_edits: &'a [(&'a str, &'a str)],
    /// Lines to append to the daemon's configuration.
    pub(crate) more: &'a str,
    /// The token that the gateway sends, configured with the commands of its page.
    pub(crate) token: Option<&'a str>,
    /// Envoy's filter.
    pub(crate) filter: Filter,
    /// The port of a relay between the gateway and the daemon.
    pub(crate) relay: Option<u16>,
    pub(crate) daemon_port: Option<Port>,
}

/// The filter by which Envoy queries the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Filter {
    /// Over HTTP.
    #[default]
    ExtAuthz,
    /// Over gRPC.
    RateLimit,
    /// Over gRPC.
    Quota,
}

/// The running programs, each on its own port.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) gateway: Gateway,
    pub(crate) daemon: Daemon,
    pub(crate) upstream: Upstream,
    pub(crate) port: Port,
    _daemon_port: Port,
    _grpc_port: Option<Port>,
    _folder: Folder,
}

/// The token in the file `gateway.token`.
pub(crate) const SECRET: &str = "5f1d0c9a77e2b4d8";

/// A longer window, so that no limit recovers during a test.
const HOURLY: (&str, &str) = ("5/min log", "5/h log");

impl Setup {
    /// The printed configuration.
    pub(crate) fn new(kind: GatewayKind) -> Self {
        Self::with(kind, Options::default())
    }

    pub(crate) fn with(kind: GatewayKind, options: Options<'_>) -> Self {
        let folder = Folder::create();
        let (port, upstream) = (Port::reserve(), Upstream::start());
        let daemon_port = options.daemon_port.unwrap_or_else(Port::reserve);
        let grpc_port = (options.filter != Filter::ExtAuthz).then(Port::reserve);
        let tollgate = grpc_port.as_ref().unwrap_or(&daemon_port).number();
        let tollgate = format!("127.0.0.1:{}", options.relay.unwrap_or(tollgate));
        let (listen, upstream_address) = (port.number().to_string(), upstream.address());
        let name = match options.filter {
            Filter::ExtAuthz => name_of(kind),
            Filter::RateLimit => "envoy-ratelimit".to_owned(),
            Filter::Quota => "envoy-rlqs".to_owned(),
        };
        let recipe = |file: &str| {
            let addresses =
                ["--upstream", &upstream_address, "--tollgate", &tollgate, "--listen", &listen];
            let (code, text, error) = init(&[&[&*name, "--file", file], &addresses[..]].concat());
            assert_eq!((code, &*error), (0, ""));
            text
        };

        let mut config = recipe("tollgate.yaml");
        let hourly: &[_] = if options.filter == Filter::Quota { &[] } else { &[HOURLY] };
        for (from, to) in [hourly, options.edits].concat() {
            assert!(config.contains(from), "{from} is not in {config}");
            config = config.replace(from, to);
        }
        config.push_str(options.more);
        folder.write("gateway.token", format!("{SECRET}\n"));
        let path = folder.write("tollgate.yaml", config);
        let grpc = grpc_port.as_ref().map(Port::number);
        let daemon = Daemon::start(&path, daemon_port.number(), grpc);

        let files = files(kind).iter().map(|name| {
            let text = recipe(name);
            let edits = options.gateway_edits.iter();
            let text = edits.fold(text, |text, (from, to)| text.replace(from, to));
            let text = if options.has_recipe_timeouts { text } else { with_long_timeouts(&text) };
            let text = match options.token {
                Some(token) => with_token(kind, name, &text, token),
                None => text,
            };
            (*name, if options.fails_closed { with_fail_closed(&text) } else { text })
        });
        let gateway = Gateway::start(kind, &files.collect::<Vec<_>>(), &port);
        upstream.take();
        Self {
            gateway,
            daemon,
            upstream,
            port,
            _daemon_port: daemon_port,
            _grpc_port: grpc_port,
            _folder: folder,
        }
    }

    /// A connection to the gateway from `127.0.0.HOST`.
    pub(crate) fn client(&self, host: u8) -> Client {
        Client::connect(host, self.port.number())
    }

    /// Sends a request over a new connection.
    pub(crate) fn send(&self, host: u8, line: &str, headers: &[&str]) -> Response {
        self.client(host).send(line, headers, "")
    }

    /// Exhausts the limit of `127.0.0.HOST`: five requests pass and the sixth is denied.
    #[track_caller]
    pub(crate) fn spend(&self, host: u8) {
        let mut client = self.client(host);
        for at in 0..5 {
            let response = client.send("GET /login", &[], "");
            assert_eq!(response.status, 200, "request {at}: {response:?}");
        }
        let response = client.send("GET /login", &[], "");
        assert_eq!(response.status, 429, "{response:?}");
        assert_eq!(self.reached(), 5);
    }

    /// The number of requests that reached the application since the last call.
    pub(crate) fn reached(&self) -> usize {
        self.upstream.take().len()
    }
}

/// The gateway's own files.
fn files(kind: GatewayKind) -> &'static [&'static str] {
    match kind {
        GatewayKind::Nginx => &["nginx.conf"],
        GatewayKind::Caddy => &["Caddyfile"],
        GatewayKind::Haproxy => &["haproxy.cfg", "tollgate.lua"],
        GatewayKind::Envoy => &["envoy.yaml"],
        GatewayKind::Traefik => &["traefik.yaml", "dynamic.yaml"],
    }
}

/// The gateway's name as an argument of `init`.
fn name_of(kind: GatewayKind) -> String {
    format!("{kind:?}").to_lowercase()
}

/// Applies the comment `To refuse it instead`: the line below it replaces the line above it.
fn with_fail_closed(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    if let Some(at) = lines.iter().position(|line| line.contains("To refuse it instead")) {
        lines[at + 1] = lines[at + 1].replacen("# ", "", 1);
        lines.remove(at - 1);
    }
    lines.join("\n") + "\n"
}

/// Runs the commands of the gateway's page that configure the token.
fn with_token(kind: GatewayKind, name: &str, text: &str, token: &str) -> String {
    let folder = Folder::create();
    folder.write("gateway.token", format!("{token}\n"));
    let file = folder.write(name, text);
    let page = page(&name_of(kind));
    let is_command = |line: &&str| line.starts_with("sed -i ") && line.contains(name);
    for line in page.lines().filter(is_command) {
        let status = Command::new("sh").args(["-c", line]).current_dir(folder.path()).status();
        assert!(status.unwrap().success(), "{line}");
    }
    fs::read_to_string(file).unwrap()
}

/// Replaces the timeouts of each gateway by long ones.
fn with_long_timeouts(text: &str) -> String {
    let limits = [
        ("250ms", "15s"),
        ("100ms", "15s"),
        ("0.25s", "15s"),
        ("0.1s", "15s"),
        ("TIMEOUT_MS = 500", "TIMEOUT_MS = 15000"),
    ];
    limits.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
