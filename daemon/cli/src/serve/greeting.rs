//! The text that `tollgate serve` prints when it is ready: listeners, policies, commands to try.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tollgate::{Kind, Policy, RestoreReport, Spec, StoreError};
use tollgate_server::{Config, ListenAddress, Scope, TokenSecret};

pub(super) struct Greeting<'a> {
    pub(super) config: &'a Config,
    /// Whether the policies are the samples.
    pub(super) is_sample: bool,
    pub(super) http: Option<ListenAddress>,
    pub(super) grpc: Option<ListenAddress>,
    pub(super) resp: Option<ListenAddress>,
    pub(super) metrics: Option<ListenAddress>,
    /// The snapshot found in the data directory.
    pub(super) restored: Option<&'a RestoreReport>,
    /// The error, if the store is unavailable.
    pub(super) store_error: Option<StoreError>,
}

/// The maximum number of policies to list.
const MAX_LISTED: usize = 20;
/// The name of the listener for Redis clients.
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
        match self
            .config
            .policies
            .iter()
            .filter_map(Demonstration::new)
            .min_by_key(Demonstration::rank)
        {
            Some(shown) => {
                self.write_envoy_request(f, shown.policy, &url)?;
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
                // This listener does not use HTTP.
                let url = if name == RESP { url.replacen("http", "redis", 1) } else { url };
                writeln!(f, "  {name:16}  {url}{path}")?;
                if at.ip().to_canonical().is_loopback() {
                    return Ok(());
                }
                writeln!(f, "                    {at}: reachable from other machines")
            }
        }
    }

    /// A request of Envoy's rate limit service as JSON, which needs no gRPC client.
    fn write_envoy_request(
        &self,
        f: &mut fmt::Formatter<'_>,
        policy: &Policy,
        url: &str,
    ) -> fmt::Result {
        // The protocol has no message for the end of a request.
        if self.grpc.is_none() || policy.has_concurrent() {
            return Ok(());
        }
        let entry = "{\"key\":\"user\",\"value\":\"42\"}";
        let descriptors = format!("[{{\"entries\":[{entry}]}}]");
        let name = policy.name();
        writeln!(f, "\nA request of Envoy's rate limit service, as JSON")?;
        writeln!(
            f,
            "  curl -s {url}/json -d '{{\"domain\":\"{name}\",\"descriptors\":{descriptors}}}'"
        )
    }

    /// A URL for this machine, also if the listener binds all addresses.
    fn url(&self, address: &ListenAddress) -> String {
        let scheme = if self.config.listen.tls.is_some() { "https" } else { "http" };
        let ListenAddress::Tcp(address) = address else { return format!("{scheme}://localhost") };
        let ip = on_this_machine(address.ip());
        format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
    }

    /// The options of curl.
    fn options(&self, address: &ListenAddress) -> String {
        let mut options = String::new();
        if let ListenAddress::Unix(path) = address {
            options.push_str(&format!("--unix-socket {} ", path.display()));
        }
        if let Some(secret) = self.secret() {
            options.push_str(&format!("-H \"Authorization: Bearer {secret}\" "));
        }
        if let Some(tls) = &self.config.listen.tls {
            // The certificate need not name this machine.
            options.push_str("-k ");
            if tls.client_ca.is_some() {
                options.push_str("--cert CLIENT.pem --key CLIENT.key ");
            }
        }
        options
    }

    /// A command over RESP with an inline limit.
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
        writeln!(f, "\nA check with an inline limit, over RESP")?;
        writeln!(f, "  redis-cli {options} CL.THROTTLE user:42 15 30 60")
    }

    /// A shell expression for a token with the scope `check`.
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
        match &self.store_error {
            None => Ok(()),
            Some(error) => {
                writeln!(f, "                    unavailable, so on_store_error applies: {error}")
            }
        }
    }

    fn write_data(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Some(data), Some(restored)) = (&self.config.store.data, self.restored) else {
            return writeln!(
                f,
                "  data              none: a restart loses all state; keep it with --data DIR"
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
            0 if policies.is_empty() => writeln!(f, "  none: only inline limits of requests"),
            0 => Ok(()),
            more => writeln!(f, "  … and {more} more"),
        }
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

    fn write(&self, f: &mut fmt::Formatter<'_>, url: &str) -> fmt::Result {
        let name = self.policy.name();
        let cost = if self.cost == 1 { String::new() } else { format!(",\"cost\":{}", self.cost) };
        let body = format!("{{\"policy\":\"{name}\",\"key\":\"user:42\"{cost}}}");
        if self.wait >= MIN_WAIT {
            let times: Vec<_> = (0..=self.passes).map(|n| (n + 1).to_string()).collect();
            let times = times.join(" ");
            let shown = "grep -iE '^(HTTP|retry-after)'";
            let pass = if self.passes == 1 {
                "1 passes".to_owned()
            } else {
                format!("{} pass", self.passes)
            };
            writeln!(f, "\nTry it: {pass}, then a denial states when to retry")?;
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
