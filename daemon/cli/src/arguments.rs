//! Arguments of the commands.

use std::ffi::OsString;
use std::num::{NonZeroU16, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use tollgate::parse_duration;

use crate::init::Address;

/// Run the daemon
///
/// Flags override environment variables such as TOLLGATE_STORE__URL, which override the file. The
/// daemon reloads the file when it changes, and on SIGHUP. On SIGTERM it completes requests in
/// flight and stops.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// The limits of a single policy `default`, such as "10/s burst 20"
    #[arg(conflicts_with = "config")]
    pub(crate) limits: Option<String>,
    /// The configuration file; without it and without LIMITS, sample policies apply
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The address for HTTP: HOST:PORT, unix:PATH or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// The address for Envoy's rate limit service over gRPC: HOST:PORT, unix:PATH or off
    /// [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Option<String>,
    /// The address for Redis clients: HOST:PORT, unix:PATH or off [default: 127.0.0.1:6380]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) resp: Option<String>,
    /// The address for /metrics: HOST:PORT, unix:PATH or off [default: 127.0.0.1:9091]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// The address for the dashboard: HOST:PORT, unix:PATH or off [default: 127.0.0.1:9090]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// The store of all state: memory, redis://HOST, redis+cluster://HOST,HOST or
    /// redis+sentinel://HOST,HOST/MASTER, with rediss for TLS [default: memory]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The prefix of all keys on Redis [default: tollgate]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The directory for snapshots, so that in-memory state survives a restart
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The maximum number of keys in memory [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_keys: Option<String>,
}

/// Run the daemon as a replacement for envoyproxy/ratelimit, configured by its environment
/// variables
///
/// Provides the same ports, limit files or xDS, health, debug pages and metrics. Variables of
/// Tollgate are not read. A binary with the name `ratelimit` always does this.
#[derive(Args, Debug)]
pub(crate) struct Ratelimit {
    /// List the environment variables with their effects, and exit
    #[arg(long)]
    pub(crate) variables: bool,

    /// Also serve the JSON API and forward auth of Tollgate on the HTTP port
    #[arg(long)]
    pub(crate) json_api: bool,

    /// Which clients may block and reset keys over the JSON API, which is then served; none by
    /// default
    #[arg(long, value_name = "CLIENTS")]
    pub(crate) operators: Option<RatelimitOperators>,

    /// Answer gRPC calls with the answers of this rate limit service, grpc://HOST:PORT, and compare them
    /// with Tollgate's decisions, in metrics and the log
    #[arg(long, value_name = "URL")]
    pub(crate) compare: Option<String>,
}

/// The clients that may operate `tollgate ratelimit`, which has no tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RatelimitOperators {
    /// Programs on this machine, and port forwarding to it
    Loopback,
}

/// A daemon, and the token for it.
#[derive(Args, Debug)]
pub(crate) struct Daemon {
    /// The daemon's URL: http://HOST:PORT or unix:PATH
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) token: Token,
}

/// The token for a daemon.
#[derive(Args, Debug)]
pub(crate) struct Token {
    /// A file with the token for a daemon with `tokens`; without it, the variable TOLLGATE_TOKEN
    #[arg(long, value_name = "FILE", env = "TOLLGATE_TOKEN_FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

/// A key under a policy, or a descriptor of Envoy's rate limit service.
#[derive(Args, Debug)]
pub(crate) struct PolicyKey {
    /// The name of a policy, or a limit such as "10/s burst 20"
    #[arg(value_name = "LIMIT|POLICY", required_unless_present = "domain")]
    pub(crate) policy: Option<String>,
    /// The key, such as user:42
    #[arg(required_unless_present = "domain")]
    pub(crate) key: Option<OsString>,
    /// The tier of the key within the policy; one that the policy does not have is ignored
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// A domain of Envoy's rate limit service, in place of policy and key
    #[arg(long, value_name = "NAME", requires = "descriptor", conflicts_with_all = ["policy", "key", "tier"])]
    pub(crate) domain: Option<String>,
    /// An entry of the descriptor, such as remote_address=10.0.0.1; repeat it for further entries
    #[arg(long, value_name = "KEY=VALUE", requires = "domain")]
    pub(crate) descriptor: Vec<String>,
}

/// Check whether a key may spend a cost now, and charge it
///
/// Exits with 0 if allowed, 1 if denied, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) key: PolicyKey,
    /// The cost
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) cost: u64,
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// Use this store instead of a daemon, such as redis://127.0.0.1:6379
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    /// The prefix of all keys in that store [default: tollgate]
    #[arg(long, value_name = "NAME", requires = "store")]
    pub(crate) namespace: Option<String>,
    /// If no daemon is reachable, decide with the state in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file with the policies, for --store and --data
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
    /// Show for each limit how much is used, and when it recovers
    #[arg(long)]
    pub(crate) explain: bool,
}

/// Report what a check would return, and charge nothing
///
/// Exits with 0 if a check would be allowed, 1 if denied, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Peek {
    #[command(flatten)]
    pub(crate) check: Check,
}

/// Show the rule, keys and limits that a configuration gives a request of a gateway
///
/// Reads the configuration file and the files that it names, without a daemon, and charges nothing.
/// The keys are those that `tollgate block` and the other commands take.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The path or the URL of the request
    pub(crate) url: String,
    /// The configuration file
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: PathBuf,
    /// The method of the request
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    pub(crate) method: String,
    /// A header of the request; repeat it for further headers
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    pub(crate) headers: Vec<String>,
    /// The address of the client
    #[arg(long, value_name = "IP")]
    pub(crate) address: Option<std::net::IpAddr>,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
}

/// An operation of an operator on a key.
#[derive(Args, Debug)]
pub(crate) struct KeyOperation {
    #[command(flatten)]
    pub(crate) key: PolicyKey,
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
}

/// Deny every request of a key, until it is unblocked or for a time
///
/// Exits with 0 if the key is blocked, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Block {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
    /// How long, such as 1h; without it until `tollgate unblock`
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) span: Option<String>,
}

/// Remove the block of a key
///
/// Exits with 0 if the key was blocked, 1 if it was not, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Unblock {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
}

/// Delete the counters, leases and reservations of a key
///
/// A block stays: see `tollgate unblock`. Exits with 0 if the key had state, 1 if it had none, 2 on
/// an error.
#[derive(Args, Debug)]
pub(crate) struct Reset {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
}

/// Give a cost back to a key
///
/// Exits with 0 if something was given back, 1 if nothing had been charged, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Refund {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
    /// The cost to give back
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_cost)]
    pub(crate) cost: NonZeroU64,
}

/// Charge a cost to a key, even beyond its limits
///
/// A limit goes into a debt of at most its capacity. Exits with 0 if something was charged, 1 if
/// the debt was at its maximum, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Penalize {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
    /// The cost to charge
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_cost)]
    pub(crate) cost: NonZeroU64,
}

/// Show the state of a key: the use of each limit, its block, leases and reservations
///
/// Under a policy with `track`, also its usage, its last requests and its timeline.
#[derive(Args, Debug)]
pub(crate) struct Inspect {
    #[command(flatten)]
    pub(crate) operation: KeyOperation,
}

/// List the keys of a policy with `track`, by their last request, their use or their denials
#[derive(Args, Debug)]
pub(crate) struct KeysArguments {
    /// The name of a policy
    pub(crate) policy: String,
    /// The order: newest, oldest, most-used or most-denied, which leaves out keys without denials
    #[arg(long, value_name = "ORDER", default_value = "newest")]
    pub(crate) order: String,
    /// What the keys begin with
    #[arg(long, value_name = "TEXT")]
    pub(crate) prefix: Option<String>,
    /// The most keys, up to 500
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    /// Where the previous page ended, as it was printed
    #[arg(long, value_name = "CURSOR")]
    pub(crate) cursor: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: Daemon,
    /// The output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
}

/// Check, print or describe the configuration, without a daemon
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check configuration files and the files that they refer to
    ///
    /// Checks each file separately, without environment variables and flags. Exits with 0 if all
    /// are valid, otherwise with 2.
    Check {
        /// The configuration files, or files and directories of envoyproxy/ratelimit
        #[arg(value_name = "FILE|DIR", required = true)]
        files: Vec<PathBuf>,
        /// The configuration, or the files of envoyproxy/ratelimit, that is replaced: warn about limits
        /// that start unused for every key
        #[arg(long, value_name = "FILE|DIR")]
        replaces: Option<PathBuf>,
        /// The output format
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: Form,
    },
    /// Print the effective configuration from file, environment and defaults, without secrets
    Print {
        /// The configuration file; without it, sample policies apply
        #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
        config: Option<PathBuf>,
        /// Show the origin of each value that is not a default
        #[arg(long)]
        origins: bool,
    },
    /// Print the JSON Schema of the configuration file, for completion and validation in editors
    Schema,
}

/// Check whether the daemon is ready
///
/// Exits with 0 if it is ready, 1 if not, 2 if it does not respond.
#[derive(Args, Debug)]
pub(crate) struct Health {
    #[command(flatten)]
    pub(crate) daemon: Daemon,
}

/// An output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Human-readable text
    Text,
    /// JSON, one object per line
    Json,
}

/// Print a gateway configuration that uses the daemon, and a matching tollgate.yaml
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The gateway
    pub(crate) gateway: Gateway,
    /// The application behind the gateway
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) upstream: Address,
    /// The daemon's address as seen by the gateway [default: 127.0.0.1:8080; for envoy-ratelimit
    /// and envoy-rlqs 127.0.0.1:8081]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tollgate: Option<Address>,
    /// The gateway's port
    #[arg(long, value_name = "PORT", default_value = "8000", value_parser = parse_port)]
    pub(crate) listen: NonZeroU16,
    /// Print only this file
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    pub(crate) file: Option<String>,
    /// Write the files into this directory instead of printing them
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

fn parse_cost(text: &str) -> Result<NonZeroU64, &'static str> {
    text.parse().map_err(|_| "write a whole number of at least 1")
}

fn parse_port(text: &str) -> Result<NonZeroU16, &'static str> {
    text.parse().map_err(|_| "write a port from 1 to 65535, without an address")
}

impl Init {
    /// The daemon's address as seen by the gateway.
    pub(crate) fn tollgate(&self) -> Address {
        let uses_grpc = matches!(self.gateway, Gateway::EnvoyRatelimit | Gateway::EnvoyRlqs);
        let port = if uses_grpc { 8081 } else { 8080 };
        let default = || Address { host: "127.0.0.1".to_owned(), port };
        self.tollgate.clone().unwrap_or_else(default)
    }
}

/// A gateway that `tollgate init` supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gateway {
    /// With auth_request
    Nginx,
    /// With reverse_proxy and handle_response
    Caddy,
    /// With forwardAuth
    Traefik,
    /// With a Lua action
    Haproxy,
    /// With ext_authz
    Envoy,
    /// With its rate limit filter, over gRPC
    EnvoyRatelimit,
    /// With its rate limit quota filter, over gRPC
    EnvoyRlqs,
}

/// A duration as written, such as `1h`, which is valid.
fn duration(text: &str) -> Result<String, String> {
    parse_duration(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}
