//! What `tollgate serve` says when it is ready: where it listens, what it limits, what to paste.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tollgate::{Kind, Policy, RestoreReport, Spec, StoreError};
use tollgate_server::{Config, ListenAddress, Scope, TokenSecret};

/// What there is to say.
pub(super) struct Greeting<'a> {
    pub(super) config: &'a Config,
    /// Whether the policies are the samples.
    pub(super) is_sample: bool,
    pub(super) http: Option<ListenAddress>,
    pub(super) grpc: Option<ListenAddress>,
    pub(super) resp: Option<ListenAddress>,
    pub(super) metrics: Option<ListenAddress>,
    /// What was found in the data directory.
    pub(super) restored: Option<&'a RestoreReport>,
    /// Why the store cannot be asked, if so.
    pub(super) away: Option<StoreError>,
}

/// How many policies are listed.
const MAX_LISTED: usize = 20;
/// What the listener for clients of Redis is called.
const RESP: &str = "RESP";

impl fmt::Display for Greeting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tollgate {} is ready\n", env!("CARGO_PKG_VERSION"))?;
        self.write_listener(f, "HTTP/1.1, HTTP/2", self.http.as_ref(), "")?;
        self.write_listener(f, "gRPC for Envoy", self.grpc.as_ref(), "")?;
        self.write_listener(f, RESP, self.resp.as_ref(), "")?;
        self.write_listener(f, "metrics", self.metrics.as_ref(), "/metrics")?;
        self.write_store(f)?;
        self.write_policies(f)?;
        if let Some(resp) = &self.resp {
            self.write_command(f, resp)?;
        }
        let Some(http) = &self.http else { return Ok(()) };
        let url = format!("{}{}", self.options(http), self.url(http));
        match self.config.policies.iter().filter_map(Demonstration::of).min_by_key(|x| x.rank()) {
            Some(shown) => {
                self.write_what_envoy_asks(f, shown.policy, &url)?;
                shown.write(f, &url)
            }
            None => Ok(()),
        }
    }
}

impl Greeting<'_> {
    fn write_listener(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        address: Option<&ListenAddress>,
        path: &str,
    ) -> fmt::Result {
        let Some(address) = address else { return writeln!(f, "  {name:16}  off") };
        match address {
            ListenAddress::Unix(_) => writeln!(f, "  {name:16}  {address}"),
            ListenAddress::Tcp(at) => {
                let url = self.url(address);
                // What is spoken there is not HTTP.
                let url = if name == RESP { url.replacen("http", "redis", 1) } else { url };
                writeln!(f, "  {name:16}  {url}{path}")?;
                if at.ip().to_canonical().is_loopback() {
                    return Ok(());
                }
                writeln!(f, "                    {at}: other machines reach it")
            }
        }
    }

    /// What Envoy asks over gRPC, as JSON, for whoever has no client of that.
    fn write_what_envoy_asks(
        &self,
        f: &mut fmt::Formatter<'_>,
        policy: &Policy,
        url: &str,
    ) -> fmt::Result {
        // Nobody would say when a request ends.
        if self.grpc.is_none() || policy.has_concurrent() {
            return Ok(());
        }
        let entry = "{\"key\":\"user\",\"value\":\"42\"}";
        let descriptors = format!("[{{\"entries\":[{entry}]}}]");
        let name = policy.name();
        writeln!(f, "\nWhat Envoy's rate limit service asks, as JSON")?;
        writeln!(
            f,
            "  curl -s {url}/json -d '{{\"domain\":\"{name}\",\"descriptors\":{descriptors}}}'"
        )
    }

    /// A URL that works on this machine, wherever it listens.
    fn url(&self, address: &ListenAddress) -> String {
        let scheme = if self.config.listen.tls.is_some() { "https" } else { "http" };
        let ListenAddress::Tcp(address) = address else { return format!("{scheme}://localhost") };
        let ip = on_this_machine(address.ip());
        format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
    }

    /// What curl needs beside the URL.
    fn options(&self, address: &ListenAddress) -> String {
        let mut options = String::new();
        if let ListenAddress::Unix(path) = address {
            options.push_str(&format!("--unix-socket {} ", path.display()));
        }
        if let Some(secret) = self.secret() {
            options.push_str(&format!("-H \"Authorization: Bearer {secret}\" "));
        }
        if let Some(tls) = &self.config.listen.tls {
            // Whoever the certificate is for, it need not be this machine's own name.
            options.push_str("-k ");
            if tls.client_ca.is_some() {
                options.push_str("--cert CLIENT.pem --key CLIENT.key ");
            }
        }
        options
    }

    /// What asks over RESP, under limits that the command itself gives.
    fn write_command(&self, f: &mut fmt::Formatter<'_>, address: &ListenAddress) -> fmt::Result {
        let mut options = match address {
            ListenAddress::Unix(path) => format!("-s {}", path.display()),
            ListenAddress::Tcp(at) => match on_this_machine(at.ip()) {
                ip if ip == Ipv4Addr::LOCALHOST => format!("-p {}", at.port()),
                ip => format!("-h {ip} -p {}", at.port()),
            },
        };
        if let Some(secret) = self.secret() {
            options.push_str(&format!(" --no-auth-warning -a \"{secret}\""));
        }
        if let Some(tls) = &self.config.listen.tls {
            options.push_str(" --tls --insecure");
            if tls.client_ca.is_some() {
                options.push_str(" --cert CLIENT.pem --key CLIENT.key");
            }
        }
        writeln!(f, "\nLimits that the command itself gives")?;
        writeln!(f, "  redis-cli {options} CL.THROTTLE user:42 15 30 60")
    }

    /// What shows a token that may check.
    fn secret(&self) -> Option<String> {
        let token = self.config.tokens.iter().find(|token| token.scopes.contains(&Scope::Check))?;
        Some(match &token.secret {
            TokenSecret::File(path) => format!("$(cat {})", path.display()),
            TokenSecret::Text(_) => "TOKEN".to_owned(),
        })
    }

    fn write_store(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let store = &self.config.store;
        if store.url.is_memory() {
            writeln!(f, "  store             memory, at most {} keys", store.max_keys)?;
            return self.write_data(f);
        }
        writeln!(f, "  store             {}, namespace {}", store.url, self.config.namespace)?;
        match &self.away {
            None => Ok(()),
            Some(why) => {
                writeln!(f, "                    away, so on_store_error answers: {why}")
            }
        }
    }

    fn write_data(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(data), Some(restored)) = (&self.config.store.data, self.restored) else {
            return writeln!(
                f,
                "  data              none: a restart forgets; keep it with --data DIR"
            );
        };
        write!(f, "  data              {}", data.display())?;
        match (&restored.quarantined, restored.taken) {
            (Some(value), _) => writeln!(
                f,
                ": started empty; quarantined {}: {}",
                value.path.display(),
                value.reason
            ),
            (None, Some(_)) => writeln!(f, ": {} keys restored", restored.keys),
            (None, None) => writeln!(f, ": new"),
        }
    }

    fn write_policies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policies: Vec<_> = self.config.policies.iter().collect();
        let samples =
            if self.is_sample { " (samples; write your own with --config FILE)" } else { "" };
        writeln!(f, "\nPolicies{samples}")?;
        let width = policies.iter().map(|policy| policy.name().len()).max().unwrap_or(0);
        for policy in policies.iter().take(MAX_LISTED) {
            let shadow = if policy.is_shadow() { "  (shadow)" } else { "" };
            writeln!(f, "  {:width$}  {policy}{shadow}", policy.name())?;
        }
        match policies.len().saturating_sub(MAX_LISTED) {
            0 if policies.is_empty() => writeln!(f, "  none: only limits given per request"),
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
    }
}

/// An address that works on this machine.
fn on_this_machine(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(v4) if v4.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(v6) if v6.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// A policy with a cost of which a few requests lead to a denial.
struct Demonstration<'a> {
    policy: &'a Policy,
    cost: u64,
    /// How many pass.
    passes: u64,
    /// How long a denied one has to wait, at most, in µs.
    wait: u64,
}

/// How many requests pass, where there is time.
const USUAL_PASSES: u64 = 5;
/// How long a denial should last, so that it is met by whoever pastes without haste, in µs.
const TIME_TO_PASTE: u64 = 10_000_000;
/// How long it must last to be met at all.
const TIME_TO_ASK: u64 = 250_000;

impl<'a> Demonstration<'a> {
    /// Of a policy that denies.
    fn of(policy: &'a Policy) -> Option<Self> {
        if policy.is_shadow() {
            return None;
        }
        let least = policy.limits().iter().min_by_key(|limit| limit.capacity())?;
        let of_cost = |cost: u64| Demonstration {
            policy,
            cost,
            passes: least.capacity() / cost,
            wait: wait(least.spec(), cost),
        };
        let few = of_cost(least.capacity().div_ceil(USUAL_PASSES));
        Some(if few.wait < TIME_TO_PASTE { of_cost(least.capacity()) } else { few })
    }

    /// The best first: one that leaves time to paste, then the one that needs the least cost.
    fn rank(&self) -> (bool, u64, u64) {
        (self.wait < TIME_TO_PASTE, self.cost, self.passes)
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, url: &str) -> fmt::Result {
        let name = self.policy.name();
        let cost = if self.cost == 1 { String::new() } else { format!(",\"cost\":{}", self.cost) };
        let body = format!("{{\"policy\":\"{name}\",\"key\":\"user:42\"{cost}}}");
        if self.wait >= TIME_TO_ASK {
            let times: Vec<_> = (0..=self.passes).map(|n| (n + 1).to_string()).collect();
            let times = times.join(" ");
            let shown = "grep -iE '^(HTTP|retry-after)'";
            let pass = if self.passes == 1 {
                "1 passes".to_owned()
            } else {
                format!("{} pass", self.passes)
            };
            writeln!(f, "\nTry it: {pass}, then a denial says when to come back")?;
            writeln!(
                f,
                "  for i in {times}; do curl -si {url}/v1/check -d '{body}' | {shown}; done"
            )?;
        } else {
            writeln!(f, "\nTry it")?;
        }
        writeln!(f, "  curl -i {url}/v1/check -d '{body}'")
    }
}

/// How long a cost is denied at most, in µs, after all of a limit was spent.
fn wait(limit: &Spec, cost: u64) -> u64 {
    let window = limit.window.get();
    match limit.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            let wait = u128::from(window) * u128::from(cost) / u128::from(limit.count);
            u64::try_from(wait).unwrap_or(u64::MAX)
        }
        _ => window,
    }
}
