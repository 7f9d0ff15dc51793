//! Forward-auth as gateways ask it, in all dialects.

mod bodies;
mod denials;
mod spoofing;
mod undecided;

use tollgate_server::Config;
use tollgate_server::rules::{
    HostPattern, Match, Networks, OnMissing, PathPattern, Rule, RuleCheck, Rules, Template,
};

use crate::client::Answer;
use crate::daemon::Daemon;

pub(crate) const DIALECTS: [&str; 5] = ["nginx", "caddy", "traefik", "haproxy", "envoy"];

const POLICIES: &str = r#"
policies:
  per-ip: { limits: ["9/min log"] }
  login: { limits: ["1/min log"] }
  api: { limits: ["9/min log"] }
  listed: { limits: ["9/min log"], deny: ["eve"] }
"#;

/// A gateway's request about one of its client's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    method: &'a str,
    target: &'a str,
    host: &'a str,
    address: &'a str,
}

const USUAL: Told<'_> =
    Told { method: "GET", target: "/ip", host: "example.com", address: "203.0.113.7" };

impl<'a> Told<'a> {
    /// The usual request, for this path and query.
    pub(crate) fn of(target: &'a str) -> Self {
        Told { target, ..USUAL }
    }

    /// The lines in which a dialect tells it, without those whose name is one of `but`.
    fn lines(&self, dialect: &str, but: &[&str]) -> Vec<String> {
        let names = match dialect {
            "envoy" => ["", "", "", "X-Forwarded-For"],
            "nginx" => ["X-Original-Method", "X-Original-URI", "X-Original-Host", "X-Real-IP"],
            _ => ["X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Host", "X-Forwarded-For"],
        };
        let values = [self.method, self.target, self.host, self.address];
        let told =
            names.iter().zip(values).filter(|(name, _)| !name.is_empty() && !but.contains(name));
        told.map(|(name, value)| format!("{name}: {value}")).collect()
    }

    /// The request, at an address that ends in `query`, with more lines before and after its own.
    pub(crate) fn request(
        &self,
        dialect: &str,
        query: &str,
        but: &[&str],
        more: [&[&str]; 2],
    ) -> String {
        let (method, target, host) = match dialect {
            "envoy" => (self.method, self.target, self.host),
            _ => ("GET", query, "tollgate"),
        };
        let [before, after] =
            more.map(|x| x.iter().map(|i| format!("{i}\r\n")).collect::<String>());
        let own: String =
            self.lines(dialect, but).iter().map(|line| format!("{line}\r\n")).collect();
        format!(
            "{method} /v1/forward-auth/{dialect}{target} HTTP/1.1\r\nHost: {host}\r\n\
             {before}{own}{after}\r\n"
        )
    }
}

/// A rule for a path, with checks such as `api {header.x-api-key} skip`.
pub(crate) fn rule(path: &str, checks: &[&str]) -> Rule {
    let check = |text: &&str| {
        let mut words = text.split(' ');
        let policy = words.next().unwrap();
        let key = Template::parse(words.next().unwrap()).unwrap();
        let on_missing =
            words.next().map(|word| OnMissing::parse(word).unwrap()).unwrap_or_default();
        RuleCheck { on_missing, ..RuleCheck::new(policy, key) }
    };
    let paths = vec![PathPattern::parse(path).unwrap()];
    Rule {
        matches: Match { paths, ..Match::default() },
        checks: checks.iter().map(check).collect(),
    }
}

/// The configuration of most of these tests: this machine is a trusted proxy.
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

/// Sends a request on a connection of its own.
pub(crate) async fn send(daemon: &Daemon, request: &str) -> Answer {
    let mut client = daemon.connect().await;
    client.send(request).await.unwrap();
    client.answer().await.unwrap()
}

/// How much of its limit a key has used.
async fn used(daemon: &Daemon, policy: &str, key: &str) -> String {
    let asked = format!(r#"{{"policy":{policy:?},"key":{key:?}}}"#);
    let body = daemon.post("/v1/inspect", &asked).await.body;
    let (_, after) = body.split_once(r#""used":"#).unwrap_or_else(|| panic!("{body}"));
    after.split(',').next().unwrap().to_owned()
}
