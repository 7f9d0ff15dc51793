//! The configuration of the daemon.
//!
//! `schema/` is the table of all fields. The file, environment variables and flags are validated
//! against the table, which parses each scalar once (`validate.rs`), and merged into one tree
//! (`layers.rs`, `tree.rs`). The types of this crate are read from the tree (`read/`).

mod address;
mod compare;
mod domain_files;
mod environment;
mod fields;
mod files;
mod json_schema;
mod layers;
mod named_files;
mod overrides_file;
pub mod pem;
mod print;
mod read;
mod reference;
mod restart;
mod samples;
mod schema;
mod secrets;
mod store;
mod tree;
mod validate;
mod warnings;
mod xds;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Policies;

pub use address::Address;
pub use compare::CompareOptions;
pub use domain_files::{
    domain_file_warnings, has_domains, has_no_domain_files, list_directory, watched_paths,
};
pub use json_schema::config_schema;
pub use layers::{Layers, LoadedConfig};
pub use named_files::FileProblem;
pub use overrides_file::{OverridesFileError, read_overrides};
pub use read::envoy::{
    CompatHeaders, CompatHealth, CompatOptions, Envoy, FailureMode, NearLimit, RefundsAndLimits,
};
pub use read::operation::{Drain, Log, LogFormat, LogLevel, Privacy};
use read::policies::Override;
pub use read::policies::OverridesFile;
pub use read::tokens::{Operators, Scope, TokenConfig, TokenSecret};
pub use read::track::{TimelineSpec, Track};
pub use reference::{config_fields, config_reference};
pub use schema::{MAX_TOKEN_BYTES, MIN_TOKEN_BYTES, short_token};
pub use store::{Password, StoreConfig, StoreUrl};
pub use tollgate_descriptors::Charging;
pub use tollgate_document::{ConfigError, ConfigErrors, FileLocation};
pub use tollgate_headers::HeaderStyle;
pub use warnings::{logged_limits, unused_limits_of_rules};
pub use xds::{XdsOptions, XdsTls};

use tollgate_descriptors::Domains;
use tollgate_rules::{HostPattern, Ipv6Prefix, Jwt, Networks, Rules};

/// The configuration of the daemon.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The prefix of all keys on Redis, which separates installations that share a server.
    pub namespace: String,
    /// The store.
    pub store: StoreConfig,
    /// The listeners.
    pub listen: Listen,
    /// The access tokens.
    pub tokens: Vec<TokenConfig>,
    /// Which clients may operate without a token, if there are no tokens.
    pub operators: Operators,
    /// The policies by name.
    pub policies: Policies,
    overrides: Arc<[Override]>,
    /// Files with more overrides of the policies.
    pub overrides_files: Vec<OverridesFile>,
    /// What is recorded about the keys of policies, by name; only policies that track something.
    pub tracks: BTreeMap<String, Track>,
    /// The rules for forward auth.
    pub rules: Rules,
    /// The proxies that are trusted to report the client's address.
    pub trusted_proxies: Networks,
    /// The length of the IPv6 prefix that identifies a client.
    pub ipv6_prefix: Ipv6Prefix,
    /// The validation of tokens whose claims are used in keys, if configured.
    pub jwt: Option<Jwt>,
    /// The file from which the keys of `jwt` were read.
    pub jwks_file: Option<PathBuf>,
    /// Envoy's rate limit service.
    pub envoy: Envoy,
    /// The domains defined by the files of `envoy.config`.
    pub domains: Arc<Domains>,
    /// The reply to `CL.THROTTLE` while the store is unavailable.
    pub throttle_on_store_error: FailureMode,
    /// The styles of rate limit headers; empty if there are none.
    pub headers: Vec<HeaderStyle>,
    /// How keys appear in logs and in the audit log.
    pub privacy: Privacy,
    /// Logging.
    pub log: Log,
    /// Graceful shutdown.
    pub drain: Drain,
    /// Resource limits for requests and connections.
    pub limits: Bounds,
    /// The effective configuration as YAML, with the origin of each value and without secrets, for
    /// the dashboard; absent unless the configuration was loaded.
    pub effective_yaml: Option<Arc<str>>,
    restart_fields: restart::RestartFields,
}

/// The listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// HTTP.
    pub http: Address,
    /// Envoy's rate limit service.
    pub grpc: Address,
    /// Redis clients.
    pub resp: Address,
    /// Metrics.
    pub metrics: Address,
    /// The dashboard and its API.
    pub admin: Address,
    /// Names under which clients reach a listener of HTTP on a loopback address.
    pub hosts: Vec<HostPattern>,
    /// TLS for all listeners.
    pub tls: Option<TlsConfig>,
}

/// The files for TLS.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// The server certificate and its intermediate certificates.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The CA bundle that verifies client certificates, if they are required.
    pub client_ca: Option<PathBuf>,
    /// A host name or address that client certificates must contain. Not settable in the file.
    pub client_name: Option<String>,
}

impl TlsConfig {
    /// TLS without client certificates.
    #[must_use]
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        TlsConfig { cert: cert.into(), key: key.into(), client_ca: None, client_name: None }
    }
}

/// Resource limits for requests and connections.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The maximum size of a key in bytes, at most 65,536.
    pub key_bytes: usize,
    /// The maximum size of a request body in bytes.
    pub body: usize,
    /// The maximum number of checks in a request, at most 32.
    pub checks: usize,
    /// The maximum number of open connections.
    pub connections: usize,
    /// The maximum number of open connections from one address.
    pub peer_connections: usize,
    /// The timeout for receiving the head of a request, and for receiving its body.
    pub header_timeout: Duration,
    /// The time after which an idle connection is closed.
    pub idle: Duration,
    /// The maximum number of commands in a transaction, and of pipelined commands that are decided
    /// before the daemon replies.
    pub pipeline: usize,
    /// The size in bytes of a connection's unsent responses from which on its requests wait.
    pub output: usize,
    /// The time after which a connection is closed whose client reads no byte of its responses.
    pub write_timeout: Duration,
    /// The maximum size in bytes of the buffers of all connections together.
    pub buffers: usize,
    /// The maximum age of a gRPC connection.
    pub connection_age: Duration,
}

impl Default for Config {
    /// The default of every field, without policies.
    fn default() -> Self {
        match Layers::new().partial() {
            Ok(partial) => partial.config,
            Err(error) => unreachable!("the defaults are valid: {error}"),
        }
    }
}
