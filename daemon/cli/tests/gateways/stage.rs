//! A client's view of a gateway: behind it the daemon and an application.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use tollgate_testkit::{Gateway, GatewayKind, Port, Upstream};

use crate::client::{Answer, Client};
use crate::daemon::{Daemon, tollgate};
use crate::documents::page;

/// How a stage differs from the recipe as it is printed.
#[derive(Debug, Default)]
pub(crate) struct Script<'a> {
    /// Whether the gateway waits for the daemon as long as the recipe says. Otherwise it is patient,
    /// so that a busy machine is not taken for a daemon that hangs.
    pub(crate) is_hasty: bool,
    /// Whether requests are refused while nothing is decided.
    pub(crate) is_closed: bool,
    /// What stands in place of parts of the daemon's configuration.
    pub(crate) edits: &'a [(&'a str, &'a str)],
    /// Lines below it.
    pub(crate) more: &'a str,
    /// The token that the gateway sends, by what its page says; without it the recipe's line stays a
    /// comment.
    pub(crate) token: Option<&'a str>,
    /// Where the gateway finds the daemon, if not at its own port.
    pub(crate) relay: Option<u16>,
    pub(crate) daemon_port: Option<Port>,
}

/// All of them, each on a port of its own.
#[derive(Debug)]
pub(crate) struct Stage {
    _gateway: Gateway,
    pub(crate) daemon: Daemon,
    pub(crate) upstream: Upstream,
    pub(crate) port: Port,
    _daemon_port: Port,
    folder: PathBuf,
}

/// What `gateway.token` holds beside the daemon's configuration.
pub(crate) const SECRET: &str = "5f1d0c9a77e2b4";

/// The same policy for an hour, so that no test is long enough to see it recover.
const HOURLY: (&str, &str) = ("5/min log", "5/h log");

impl Stage {
    /// As the recipe is printed.
    pub(crate) fn of(kind: GatewayKind) -> Self {
        Self::with(kind, Script::default())
    }

    pub(crate) fn with(kind: GatewayKind, script: Script<'_>) -> Self {
        let folder = folder();
        let (port, upstream) = (Port::reserve(), Upstream::start());
        let daemon_port = script.daemon_port.unwrap_or_else(Port::reserve);
        let asked = script.relay.unwrap_or(daemon_port.number());
        let recipe = |file| init(kind, file, &upstream.address(), asked, port.number());

        let mut config = recipe("tollgate.yaml");
        for (from, to) in [&[HOURLY], script.edits].concat() {
            assert!(config.contains(from), "{from} is not in {config}");
            config = config.replace(from, to);
        }
        config.push_str(script.more);
        fs::write(folder.join("gateway.token"), format!("{SECRET}\n")).unwrap();
        let path = folder.join("tollgate.yaml");
        fs::write(&path, config).unwrap();
        let daemon = Daemon::start(&path, daemon_port.number());

        let files = files(kind).iter().map(|name| {
            let text = recipe(name);
            let text = if script.is_hasty { text } else { patient(&text) };
            let text = match script.token {
                Some(token) => with_token(kind, name, &text, token),
                None => text,
            };
            (*name, if script.is_closed { closed(&text) } else { text })
        });
        let gateway = Gateway::start(kind, &files.collect::<Vec<_>>(), &port);
        Self { _gateway: gateway, daemon, upstream, port, _daemon_port: daemon_port, folder }
    }

    /// A connection to the gateway from `127.0.0.HOST`.
    pub(crate) fn client(&self, host: u8) -> Client {
        Client::connect(host, self.port.number())
    }

    /// One request over a connection of its own.
    pub(crate) fn send(&self, host: u8, line: &str, headers: &[&str]) -> Answer {
        self.client(host).send(line, headers, "")
    }

    /// Sends requests from `127.0.0.HOST` until one is denied: exactly the five of the policy pass.
    #[track_caller]
    pub(crate) fn spend(&self, host: u8) {
        let mut client = self.client(host);
        for at in 0..5 {
            let answer = client.send("GET /login", &[], "");
            assert_eq!(answer.status, 200, "request {at}: {answer:?}");
        }
        let answer = client.send("GET /login", &[], "");
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(self.reached(), 5);
    }

    /// How many requests have reached the application since this was last asked.
    pub(crate) fn reached(&self) -> usize {
        self.upstream.take().len()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // A folder that stays is a nuisance, but no reason to fail a test.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The gateway's own files.
pub(crate) fn files(kind: GatewayKind) -> &'static [&'static str] {
    match kind {
        GatewayKind::Nginx => &["nginx.conf"],
        GatewayKind::Caddy => &["Caddyfile"],
        GatewayKind::Haproxy => &["haproxy.cfg", "tollgate.lua"],
        GatewayKind::Envoy => &["envoy.yaml"],
    }
}

fn init(kind: GatewayKind, file: &str, upstream: &str, tollgate_port: u16, port: u16) -> String {
    let gateway = format!("{kind:?}").to_lowercase();
    let mut command = tollgate();
    command.args(["init", &gateway, "--file", file, "--upstream", upstream]);
    command.args(["--tollgate", &format!("127.0.0.1:{tollgate_port}")]);
    let output = command.args(["--listen", &port.to_string()]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// What the recipe says to do in order to refuse: the line below `To refuse it instead` in place of
/// the one above.
fn closed(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    if let Some(at) = lines.iter().position(|line| line.contains("To refuse it instead")) {
        lines[at + 1] = lines[at + 1].replacen("# ", "", 1);
        lines.remove(at - 1);
    }
    lines.join("\n") + "\n"
}

/// As the gateway's page says to have it send a token: by what is pasted from there.
pub(crate) fn with_token(kind: GatewayKind, name: &str, text: &str, token: &str) -> String {
    let folder = folder();
    fs::write(folder.join("gateway.token"), format!("{token}\n")).unwrap();
    fs::write(folder.join(name), text).unwrap();
    let page = page(&format!("{kind:?}").to_lowercase());
    let of_this = |line: &&str| line.starts_with("sed -i ") && line.contains(name);
    for line in page.lines().filter(of_this) {
        let status = Command::new("sh").args(["-c", line]).current_dir(&folder).status();
        assert!(status.unwrap().success(), "{line}");
    }
    let text = fs::read_to_string(folder.join(name)).unwrap();
    fs::remove_dir_all(folder).unwrap();
    text
}

/// With much longer time limits, in the words of each gateway.
fn patient(text: &str) -> String {
    let limits = [
        ("250ms", "15s"),
        ("100ms", "15s"),
        ("0.25s", "15s"),
        ("TIMEOUT_MS = 500", "TIMEOUT_MS = 15000"),
    ];
    limits.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

pub(crate) fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("tollgate-gateways-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).unwrap();
    folder
}
