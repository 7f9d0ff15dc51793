//! The text that `tollgate serve` prints when it is ready: listeners, policies, commands to try.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use anyhow::Result;
use tollgate::{Kind, Policy, Spec};
use tollgate_daemon::{Config, ListenAddress, Listener, Scope, TokenSecret};

use super::Ready;
use crate::output::{counted, memory_bounds};

/// The maximum number of policies to list.
const MAX_LISTED: usize = 20;
/// The name of the listener for Redis clients.
const RESP: &str = "RESP";

/// The whole text. `is_sample` states whether the policies are the samples.
pub(super) fn greeting(ready: &Ready<'_>, is_sample: bool) -> Result<String> {
    let (config, listeners) = (ready.config, ready.listeners);
    let address =
        |listener: &Option<Listener>| listener.as_ref().map(Listener::address).transpose();
    let (http, grpc) = (address(&listeners.http)?, address(&listeners.grpc)?);
    let (resp, metrics) = (address(&listeners.resp)?, address(&listeners.metrics)?);
    let admin = address(&listeners.admin)?;
    let mut text = format!("tollgate {} is ready\n\n", env!("CARGO_PKG_VERSION"));
    for (name, address, path) in [
        ("HTTP/1.1, HTTP/2", &http, ""),
        ("gRPC for Envoy", &grpc, ""),
        (RESP, &resp, ""),
        ("metrics", &metrics, "/metrics"),
        ("dashboard", &admin, "/"),
    ] {
        text += &listener(config, name, address.as_ref(), path);
    }
    text += &store(ready);
    text += &policies(config, is_sample);
    text += &domains(config);
    if let Some(resp) = &resp {
        text += &resp_command(config, resp);
    }
    let Some(http) = &http else { return Ok(text) };
    let url = format!("{}{}", curl_options(config, http), url(config, http));
    let demonstrations = config.policies.iter().filter_map(Demonstration::new);
    if let Some(shown) = demonstrations.min_by_key(Demonstration::rank) {
        // The protocol of Envoy has no message for the end of a request.
        if grpc.is_some() && !shown.policy.has_concurrent() {
            text += &envoy_request(shown.policy, &url);
        }
        text += &shown.commands(&url);
    }
    Ok(text)
}

fn listener(config: &Config, name: &str, address: Option<&ListenAddress>, path: &str) -> String {
    match address {
        None => format!("  {name:16}  off\n"),
        Some(address @ ListenAddress::Unix(_)) => format!("  {name:16}  {address}\n"),
        Some(address @ ListenAddress::Tcp(at)) => {
            let url = url(config, address);
            // This listener does not use HTTP.
            let url = if name == RESP { url.replacen("http", "redis", 1) } else { url };
            let text = format!("  {name:16}  {url}{path}\n");
            if at.ip().to_canonical().is_loopback() {
                return text;
            }
            text + &format!("                    {at}: reachable from other machines\n")
        }
    }
}

/// A request of Envoy's rate limit service as JSON, which needs no gRPC client.
fn envoy_request(policy: &Policy, url: &str) -> String {
    let entry = "{\"key\":\"user\",\"value\":\"42\"}";
    let descriptors = format!("[{{\"entries\":[{entry}]}}]");
    let name = policy.name();
    format!(
        "\nA request of Envoy's rate limit service, as JSON\n  \
         curl -s {url}/json -d '{{\"domain\":\"{name}\",\"descriptors\":{descriptors}}}'\n"
    )
}

/// A URL for this machine, also if the listener binds all addresses.
fn url(config: &Config, address: &ListenAddress) -> String {
    let scheme = if config.listen.tls.is_some() { "https" } else { "http" };
    let ListenAddress::Tcp(address) = address else { return format!("{scheme}://localhost") };
    let ip = on_this_machine(address.ip());
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

fn curl_options(config: &Config, address: &ListenAddress) -> String {
    let mut options = String::new();
    if let ListenAddress::Unix(path) = address {
        options += &format!("--unix-socket {} ", path.display());
    }
    if let Some(secret) = secret(config) {
        options += &format!("-H \"Authorization: Bearer {secret}\" ");
    }
    if let Some(tls) = &config.listen.tls {
        // The certificate need not name this machine.
        options += "-k ";
        if tls.client_ca.is_some() {
            options += "--cert CLIENT.pem --key CLIENT.key ";
        }
    }
    options
}

/// A command over RESP with an inline limit.
fn resp_command(config: &Config, address: &ListenAddress) -> String {
    let mut options = match address {
        ListenAddress::Unix(path) => format!("-s {}", path.display()),
        ListenAddress::Tcp(at) => match on_this_machine(at.ip()) {
            ip if ip == Ipv4Addr::LOCALHOST => format!("-p {}", at.port()),
            ip => format!("-h {ip} -p {}", at.port()),
        },
    };
    if let Some(secret) = secret(config) {
        options += &format!(" --no-auth-warning -a \"{secret}\"");
    }
    if let Some(tls) = &config.listen.tls {
        options += " --tls --insecure";
        if tls.client_ca.is_some() {
            options += " --cert CLIENT.pem --key CLIENT.key";
        }
    }
    format!(
        "\nA check with an inline limit, over RESP\n  \
         redis-cli {options} CL.THROTTLE user:42 15 30 60\n"
    )
}

/// A shell expression for a token with the scope `check`.
fn secret(config: &Config) -> Option<String> {
    let mut tokens = config.tokens.iter().filter(|token| token.scopes.contains(&Scope::Check));
    tokens.find_map(|token| match &token.secret {
        TokenSecret::File(path) => Some(format!("$(cat {})", path.display())),
        TokenSecret::Text(_) | TokenSecret::Sha256(_) => Some("TOKEN".to_owned()),
        TokenSecret::Certificate(_) => None,
    })
}

fn store(ready: &Ready<'_>) -> String {
    let store = &ready.config.store;
    if store.url.is_memory() {
        let (bounds, data) = (memory_bounds(ready.config), data(ready));
        return format!("  store             memory, {bounds}\n  data              {data}\n");
    }
    let namespace = &ready.config.namespace;
    let text = format!("  store             {}, namespace {namespace}\n", store.url);
    match &ready.store_error {
        None => text,
        Some(error) => {
            let state = format!("unavailable, so on_store_error applies: {error}");
            text + &format!("                    {state}\n")
        }
    }
}

/// The data directory of the memory store.
fn data(ready: &Ready<'_>) -> String {
    let (Some(data), Some(restored)) = (&ready.config.store.data, ready.restored) else {
        return "none: a restart loses all state; keep it with --data DIR".to_owned();
    };
    let data = data.display();
    match (&restored.quarantined, restored.taken) {
        (Some(file), _) => {
            let (path, reason) = (file.path.display(), &file.reason);
            format!("{data}: started empty; quarantined {path}: {reason}")
        }
        (None, Some(_)) => format!("{data}: {} keys restored", restored.keys),
        (None, None) => format!("{data}: new"),
    }
}

fn policies(config: &Config, is_sample: bool) -> String {
    let policies: Vec<_> = config.policies.iter().collect();
    let samples = if is_sample { " (samples; write your own with --config FILE)" } else { "" };
    let mut text = format!("\nPolicies{samples}\n");
    let width = policies.iter().map(|policy| policy.name().len()).max().unwrap_or(0);
    for policy in policies.iter().take(MAX_LISTED) {
        let shadow = if policy.is_shadow() { "  (shadow)" } else { "" };
        text += &format!("  {:width$}  {policy}{shadow}\n", policy.name());
    }
    match policies.len().saturating_sub(MAX_LISTED) {
        0 if policies.is_empty() && config.domains.is_empty() => {
            text + "  none: only inline limits of requests\n"
        }
        0 if policies.is_empty() => text + "  none: only domains and inline limits of requests\n",
        0 => text,
        more => text + &format!("  … and {more} more\n"),
    }
}

/// The domains of Envoy's rate limit service, with the number of their limits.
fn domains(config: &Config) -> String {
    let domains: Vec<_> = config.domains.rule_counts().collect();
    if domains.is_empty() {
        return String::new();
    }
    let mut text = "\nDomains of Envoy's rate limit service\n".to_owned();
    let width = domains.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, rules) in domains.iter().take(MAX_LISTED) {
        text += &format!("  {name:width$}  {}\n", counted(*rules, "limit", "limits"));
    }
    match domains.len().saturating_sub(MAX_LISTED) {
        0 => text,
        more => text + &format!("  … and {more} more\n"),
    }
}

/// The address to use on this machine.
fn on_this_machine(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// A policy and a cost with which a few requests lead to a denial.
struct Demonstration<'a> {
    policy: &'a Policy,
    cost: u64,
    /// The number of requests that pass.
    passes: u64,
    /// The longest time until a denied request passes, in µs.
    wait: u64,
}

/// The preferred number of requests that pass.
const PREFERRED_PASSES: u64 = 5;
/// The preferred duration of a denial, long enough to paste the command, in µs.
const PREFERRED_WAIT: u64 = 10_000_000;
/// The shortest denial that the requests of one command can reach, in µs.
const MIN_WAIT: u64 = 250_000;

impl<'a> Demonstration<'a> {
    /// `None` for a policy that does not deny.
    fn new(policy: &'a Policy) -> Option<Self> {
        if policy.is_shadow() {
            return None;
        }
        let smallest = policy.limits().iter().min_by_key(|limit| limit.capacity())?;
        let with_cost = |cost: u64| Demonstration {
            policy,
            cost,
            passes: smallest.capacity() / cost,
            wait: wait(smallest.spec(), cost),
        };
        let few = with_cost(smallest.capacity().div_ceil(PREFERRED_PASSES));
        Some(if few.wait < PREFERRED_WAIT { with_cost(smallest.capacity()) } else { few })
    }

    /// Sorts long enough denials first, then the lowest cost.
    fn rank(&self) -> (bool, u64, u64) {
        (self.wait < PREFERRED_WAIT, self.cost, self.passes)
    }

    /// Commands with which a few requests pass, and the next one is denied.
    fn commands(&self, url: &str) -> String {
        let name = self.policy.name();
        let cost = if self.cost == 1 { String::new() } else { format!(",\"cost\":{}", self.cost) };
        let body = format!("{{\"policy\":\"{name}\",\"key\":\"user:42\"{cost}}}");
        let mut text = String::from("\nTry it");
        if self.wait >= MIN_WAIT {
            let times: Vec<_> = (0..=self.passes).map(|n| (n + 1).to_string()).collect();
            let times = times.join(" ");
            let shown = "grep -iE '^(HTTP|retry-after)'";
            let verb = if self.passes == 1 { "passes" } else { "pass" };
            text += &format!(
                ": {} {verb}, then a denial states when to retry\n  \
                 for i in {times}; do curl -si {url}/v1/check -d '{body}' | {shown}; done",
                self.passes
            );
        }
        text + &format!("\n  curl -i {url}/v1/check -d '{body}'\n")
    }
}

/// The longest time until a cost passes after a limit was exhausted, in µs.
fn wait(limit: &Spec, cost: u64) -> u64 {
    let window = limit.window.get();
    match limit.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            let wait = u128::from(window) * u128::from(cost) / u128::from(limit.count);
            // Only compared, so that saturation is enough.
            u64::try_from(wait).unwrap_or(u64::MAX)
        }
        _ => window,
    }
}
