//! Forward auth, in the format of each gateway.

mod denials;
mod errors;
mod problem_documents;
mod spoofing;

use tollgate_daemon::Config;
use tollgate_daemon::rules::{
    HostPattern, Match, Networks, OnMissing, PathPattern, Rule, RuleCheck, Rules, Template,
};

use crate::support::client::Response;
use crate::support::daemon::Daemon;

pub(crate) const GATEWAYS: [&str; 5] = ["nginx", "caddy", "traefik", "haproxy", "envoy"];

const POLICIES: &str = r#"
policies:
  per-ip: { limits: ["9/min log"] }
  login: { limits: ["1/min log"] }
  api: { limits: ["9/min log"] }
  listed: { limits: ["9/min log"], deny: ["eve"] }
"#;

/// The request of a gateway about a request of its client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) target: &'a str,
    /// The address that the gateway reports.
    pub(crate) address: &'a str,
    /// The query of the gateway's own request.
    pub(crate) query: &'a str,
    /// A header that the gateway leaves out.
    pub(crate) omitted: &'a str,
    /// More header lines before those of the gateway.
    pub(crate) before: &'a [&'a str],
    /// More header lines after those of the gateway.
    pub(crate) after: &'a [&'a str],
}

/// The host and the address of the client.
const HOST: &str = "example.com";
const ADDRESS: &str = "203.0.113.7";

impl<'a> ForwardedRequest<'a> {
    /// A request for this path and query.
    pub(crate) fn to(target: &'a str) -> Self {
        let (before, after) = (&[][..], &[][..]);
        ForwardedRequest { target, address: ADDRESS, query: "", omitted: "", before, after }
    }

    /// Adds header lines before those of the gateway.
    pub(crate) fn before(self, before: &'a [&'a str]) -> Self {
        ForwardedRequest { before, ..self }
    }

    /// The header lines in which a gateway describes the request.
    fn lines(&self, gateway: &str) -> Vec<String> {
        let names = match gateway {
            "envoy" => ["", "", "", "X-Forwarded-For"],
            "nginx" => ["X-Original-Method", "X-Original-URI", "X-Original-Host", "X-Real-IP"],
            _ => ["X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-For"],
        };
        let values = ["GET", self.target, HOST, self.address];
        let headers = names.iter().zip(values);
        let headers = headers.filter(|(name, _)| !name.is_empty() && **name != self.omitted);
        headers.map(|(name, value)| format!("{name}: {value}")).collect()
    }

    /// Sends the request as this gateway does.
    pub(crate) async fn send(&self, daemon: &Daemon, gateway: &str) -> Response {
        send(daemon, &self.encode(gateway)).await
    }

    pub(crate) fn encode(&self, gateway: &str) -> String {
        let (target, host) = match gateway {
            "envoy" => (self.target, HOST),
            _ => (self.query, "tollgate"),
        };
        let own = self.lines(gateway);
        let own = own.iter().map(|line| &**line);
        let lines = self.before.iter().copied().chain(own).chain(self.after.iter().copied());
        let lines: String = lines.map(|line| format!("{line}\r\n")).collect();
        format!("GET /v1/forward-auth/{gateway}{target} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n")
    }
}

/// A rule for a path, with checks such as `api {header.x-api-key} skip`.
pub(crate) fn rule(path: &str, checks: &[&str]) -> Rule {
    let check = |text: &&str| {
        let mut words = text.split(' ');
        let policy = words.next().unwrap();
        let key = Template::parse(words.next().unwrap()).unwrap();
        let on_missing =
            words.next().map_or(OnMissing::default(), |word| OnMissing::parse(word).unwrap());
        RuleCheck { on_missing, ..RuleCheck::new(policy, key) }
    };
    let paths = vec![PathPattern::parse(path).unwrap()];
    Rule {
        matches: Match { paths, ..Match::default() },
        checks: checks.iter().map(check).collect(),
    }
}

/// The configuration of most of these tests. This machine is a trusted proxy.
pub(crate) fn config() -> Config {
    let mut hosted = rule("/host", &["api {host}"]);
    hosted.matches.hosts.push(HostPattern::parse("*.com").unwrap());
    let rules = vec![
        rule("/ip", &["per-ip {ip}"]),
        rule("/login", &["login {ip}"]),
        rule("/two", &["per-ip {ip}", "login {header.x-api-key}"]),
        rule("/key", &["api {header.x-api-key}"]),
        rule("/key-or-ip", &["api {header.x-api-key|ip}"]),
        rule("/skip", &["api {header.x-api-key} skip"]),
        rule("/deny", &["api {header.x-api-key} deny"]),
        rule("/error", &["api {header.x-api-key} error"]),
        rule("/listed", &["listed {header.x-api-key}"]),
        rule("/path/**", &["api {method}:{path}"]),
        hosted,
    ];
    let mut config = Config::from_yaml(POLICIES).unwrap();
    config.rules = Rules { rules, ..Rules::default() };
    config.trusted_proxies = Networks::parse("127.0.0.1").unwrap();
    config
}

/// Sends a request on a new connection.
pub(crate) async fn send(daemon: &Daemon, request: &str) -> Response {
    daemon.send(request).await.read_response().await.unwrap()
}

/// How much of its limit a key has used.
async fn used(daemon: &Daemon, policy: &str, key: &str) -> String {
    let body = format!(r#"{{"policy":{policy:?},"key":{key:?}}}"#);
    let body = daemon.post("/v1/inspect", &body).await.body;
    let (_, after) = body.split_once(r#""used":"#).unwrap_or_else(|| panic!("{body}"));
    after.split(',').next().unwrap().to_owned()
}
