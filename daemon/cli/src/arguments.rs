//! The words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::bench::Bench;
use crate::init::Address;
use crate::replay::arguments::Replay;

/// Exact rate limits: may this key spend this cost now, and if not, when?
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Check(Check),
    Bench(Box<Bench>),
    Ratelimit(Ratelimit),
    Health(Health),
    Config(Config),
    Init(Init),
    Replay(Replay),
    Completions(Completions),
    Man(Man),
}

/// Print a shell's completions of this tool
///
/// For bash: tollgate completions bash > ~/.local/share/bash-completion/completions/tollgate
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell that completes
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual page, or write those of all commands
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write a page for each command into this directory, and print none
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

/// Run the daemon
///
/// A flag wins over an environment variable, such as TOLLGATE_STORE__URL, and both over the file. The
/// file is read again when it changes, and on SIGHUP. On SIGTERM it answers what is under way and
/// stops.
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Limits of one policy, named `default`, such as "10/s burst 20"
    #[arg(conflicts_with = "config")]
    pub(crate) limits: Option<String>,
    /// The configuration file; without one, and without LIMITS, there are sample policies
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen for HTTP: HOST:PORT, unix:PATH or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Where to listen for Envoy's rate limit service over gRPC: HOST:PORT, unix:PATH or off
    /// [default: 127.0.0.1:8081]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) grpc: Option<String>,
    /// Where to listen for clients of Redis: HOST:PORT, unix:PATH or off [default: 127.0.0.1:6380]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) resp: Option<String>,
    /// Where to listen for /metrics: HOST:PORT, unix:PATH or off [default: 127.0.0.1:9091]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// Where state lives: memory, redis://HOST, redis+cluster://HOST,HOST or
    /// redis+sentinel://HOST,HOST/MASTER, with rediss for TLS [default: memory]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// What the names of all keys on Redis begin with [default: tollgate]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Keep memory over a restart, in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The most keys in memory [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_keys: Option<String>,
}

/// Run the daemon in the place of envoyproxy/ratelimit, by its environment variables
///
/// Its ports, its files of limits or its server of xDS, its health, its debug pages, its metrics. No
/// variable of Tollgate is read. Called as `ratelimit`, this program does the same.
#[derive(Args, Debug)]
pub(crate) struct Ratelimit {
    /// List the environment variables and what becomes of each, and do nothing else
    #[arg(long)]
    pub(crate) variables: bool,
}

/// Tollgate in the place of envoyproxy/ratelimit, by its environment variables
///
/// Its ports, its files of limits or its server of xDS, its health, its debug pages, its metrics. No
/// variable of Tollgate is read.
#[derive(Debug, Parser)]
#[command(name = "ratelimit", version)]
pub(crate) struct RatelimitAlone {
    #[command(flatten)]
    pub(crate) it: Ratelimit,
}

/// Ask whether a key may spend a cost now, and spend it
///
/// Exits with 0 if allowed, 1 if denied, 2 on an error.
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// A policy's name, or a limit such as "10/s burst 20"
    #[arg(value_name = "LIMIT|POLICY")]
    pub(crate) policy: String,
    /// Who is limited, such as user:42
    pub(crate) key: OsString,
    /// The tier of the policy that the key is in
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// How much is spent
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) cost: u64,
    /// Only look; nothing is spent
    #[arg(long)]
    pub(crate) peek: bool,
    /// The daemon to ask
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// Ask this store in place of a daemon, such as redis://127.0.0.1:6379
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    /// What the names of all keys in that store begin with [default: tollgate]
    #[arg(long, value_name = "NAME", requires = "store")]
    pub(crate) namespace: Option<String>,
    /// Where no daemon runs, decide with what is kept in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file that names the policies, for --store and --data
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How the answer is written
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    pub(crate) output: Form,
    /// Say of each limit what is used, and when it is free again
    #[arg(long)]
    pub(crate) explain: bool,
}

/// Check, print or describe the configuration, without a daemon
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check configuration files, with all files that they name
    ///
    /// Each is checked by itself, without environment and flags. Exits with 0 if all are well, else
    /// with 2.
    Check {
        /// The configuration files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// How mistakes are written
        #[arg(short, long, value_name = "FORMAT", default_value = "text")]
        output: Form,
    },
    /// Print what the daemon would run with: the file, the environment, the defaults; no secret
    Print {
        /// The configuration file; without one there are sample policies
        #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
        config: Option<PathBuf>,
        /// Say beside each value that is no default where it comes from
        #[arg(long)]
        origins: bool,
    },
    /// Print the JSON Schema of the configuration file, by which editors complete and check it
    Schema,
}

/// Ask the daemon whether it is ready
///
/// Exits with 0 if so, 1 if not, 2 if nobody answers.
#[derive(Args, Debug)]
pub(crate) struct Health {
    /// The daemon to ask
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// For people
    Text,
    /// For programs: an object a line
    Json,
}

/// Print a configuration by which a gateway asks the daemon, and a tollgate.yaml to go with it
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The gateway
    pub(crate) gateway: Gateway,
    /// The application behind the gateway
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) upstream: Address,
    /// The daemon, as the gateway reaches it [default: 127.0.0.1:8080; for envoy-ratelimit
    /// 127.0.0.1:8081]
    #[arg(long, value_name = "HOST:PORT")]
    pub(crate) tollgate: Option<Address>,
    /// The port at which the gateway listens
    #[arg(long, value_name = "PORT", default_value = "8000")]
    pub(crate) listen: std::num::NonZeroU16,
    /// Print only this one of the files
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    pub(crate) file: Option<String>,
    /// Write the files into this directory, and print none
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

impl Init {
    /// The daemon, as the gateway reaches it.
    pub(crate) fn tollgate(&self) -> Address {
        let port = if self.gateway == Gateway::EnvoyRatelimit { 8081 } else { 8080 };
        let usual = || Address { host: "127.0.0.1".to_owned(), port };
        self.tollgate.clone().unwrap_or_else(usual)
    }
}

/// A gateway that there is a recipe for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gateway {
    /// By auth_request
    Nginx,
    /// By reverse_proxy and handle_response
    Caddy,
    /// By forwardAuth
    Traefik,
    /// By a Lua action
    Haproxy,
    /// By ext_authz
    Envoy,
    /// By its rate limit filter, over gRPC
    EnvoyRatelimit,
}
