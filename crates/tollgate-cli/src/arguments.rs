//! The words of the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::init::Address;

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
    Health(Health),
    Config(Config),
    Init(Init),
    Completions(Completions),
    Man(Man),
}

/// Print what a shell completes, for it to read at its start
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

/// Print the manual's page
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// Write a page for each command into this directory, in place of one to standard output
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
}

/// Run the daemon
#[derive(Args, Debug)]
pub(crate) struct Serve {
    /// Limits of one policy, named `default`, such as "10/s burst 20"
    #[arg(conflicts_with = "config")]
    pub(crate) limits: Option<String>,
    /// The configuration file; without one there are sample policies
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Where to listen for HTTP: HOST:PORT, unix:PATH or off [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) http: Option<String>,
    /// Where to listen for /metrics: HOST:PORT, unix:PATH or off [default: 127.0.0.1:9091]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) metrics: Option<String>,
    /// Where state lives: memory, redis://HOST, redis+cluster://HOST,HOST or
    /// redis+sentinel://HOST,HOST/MASTER, with rediss for TLS [default: memory]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// What the names of all keys on Redis begin with [default: tollgate]
    #[arg(long, value_name = "N")]
    pub(crate) namespace: Option<String>,
    /// Keep memory in this directory over a restart
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<String>,
    /// The most keys in memory [default: 1000000]
    #[arg(long, value_name = "N")]
    pub(crate) max_keys: Option<String>,
}

/// Ask the daemon, or a store, about a key: exits with 0 if allowed, 1 if denied, 2 on an error
#[derive(Args, Debug)]
pub(crate) struct Check {
    /// A policy's name, or a limit such as "10/s burst 20"
    #[arg(value_name = "LIMIT|POLICY")]
    pub(crate) policy: String,
    /// Who is limited
    pub(crate) key: OsString,
    /// The tier of the policy that the key is in
    #[arg(long, value_name = "TIER")]
    pub(crate) tier: Option<String>,
    /// What is spent
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) cost: u64,
    /// Only look; nothing is spent
    #[arg(long)]
    pub(crate) peek: bool,
    /// The daemon
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// Ask this store in place of a daemon, such as redis://127.0.0.1:6379
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    pub(crate) store: Option<String>,
    /// What the names of all keys in that store begin with [default: tollgate]
    #[arg(long, value_name = "N", requires = "store")]
    pub(crate) namespace: Option<String>,
    /// Where no daemon runs, decide in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration file that names the policies, for --store and --data
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How the answer is written
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Form,
    /// Say of each limit what is used and why
    #[arg(long)]
    pub(crate) explain: bool,
}

/// Look at the configuration, without a daemon
#[derive(Args, Debug)]
pub(crate) struct Config {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say of files whether the daemon would take them: exits with 0 if all are well, else with 2
    Check {
        /// The files
        #[arg(value_name = "FILE", required = true)]
        files: Vec<PathBuf>,
        /// How it is said
        #[arg(short, long, value_name = "FORM", default_value = "text")]
        output: Form,
    },
    /// Print what the daemon would run with: the file, the environment, the defaults
    Print {
        /// The configuration file; without one there are sample policies
        #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
        config: Option<PathBuf>,
        /// Say of each value where it comes from, unless it is a default
        #[arg(long)]
        origins: bool,
    },
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

/// Ask the daemon whether it is ready: exits with 0 if so, 1 if not, 2 if nobody answers
#[derive(Args, Debug)]
pub(crate) struct Health {
    /// The daemon
    #[arg(long, env = "TOLLGATE_URL", default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A line for people
    Text,
    /// The decision as the daemon writes it
    Json,
}

/// Print what makes a gateway ask the daemon: its configuration, and a tollgate.yaml to go with it
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The gateway
    pub(crate) gateway: Gateway,
    /// The application behind it
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:3000")]
    pub(crate) upstream: Address,
    /// The daemon
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    pub(crate) tollgate: Address,
    /// Where the gateway listens
    #[arg(long, value_name = "PORT", default_value = "8000")]
    pub(crate) listen: std::num::NonZeroU16,
    /// Print this file alone
    #[arg(long, value_name = "NAME", conflicts_with = "write")]
    pub(crate) file: Option<String>,
    /// Write the files into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
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
}
