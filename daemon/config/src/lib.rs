//! The configuration: what the daemon runs with, and where that comes from.
//!
//! `schema/` is the table of all fields. A file becomes a tree (`yaml.rs`, `tree.rs`), which is held
//! against the table (`shape.rs`) and then read, field by field (`read/`), with what environment and
//! flags lay over it (`layers.rs`).

mod address;
mod domain_files;
mod environment;
mod fields;
mod json_schema;
mod layers;
mod named_files;
mod near_limit;
mod overrides_file;
pub mod pem;
mod print;
mod read;
mod reference;
mod restart;
mod samples;
mod schema;
mod secrets;
mod shape;
mod store;
mod xds;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tollgate::Policies;

pub use address::Address;
pub use domain_files::{has_no_domain_files, list_directory, watched_paths};
pub use json_schema::config_schema;
pub use layers::{Layers, LoadedConfig};
pub use named_files::FileProblem;
pub use near_limit::NearLimit;
pub use overrides_file::{OverridesFileError, read_overrides};
pub use read::envoy::{CompatHeaders, CompatHealth, CompatOptions, Envoy, RuleOnStoreError};
pub use read::operation::{Drain, HeaderStyle, Log, LogFormat, LogLevel, Privacy};
pub use read::policies::OverridesFile;
pub use read::tokens::{Scope, TokenConfig, TokenSecret};
pub use reference::{config_fields, config_reference};
pub use store::{Password, StoreConfig, StoreUrl};
pub use tollgate_descriptors::Charging;
pub use tollgate_document::{ConfigError, ConfigErrors, FileLocation};
pub use xds::{XdsError, XdsOptions, XdsTls};

use tollgate_descriptors::Domains;
use tollgate_rules::{Ipv6Prefix, Jwt, Networks, Rules};

/// What the daemon runs with.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// What keeps two installations on one store apart. Memory is always one's own.
    pub namespace: String,
    /// Where state lives.
    pub store: StoreConfig,
    /// Where it listens.
    pub listen: Listen,
    /// Who may do what.
    pub tokens: Vec<TokenConfig>,
    /// The policies by name.
    pub policies: Policies,
    /// Files of more overrides, to be read into the policies.
    pub overrides_files: Vec<OverridesFile>,
    /// Which policies hold for the requests that gateways ask about.
    pub rules: Rules,
    /// Whose word is taken on a client's address.
    pub trusted_proxies: Networks,
    /// How much of a client's IPv6 address is in a key.
    pub ipv6_prefix: Ipv6Prefix,
    /// How the tokens that keys are made of are read, if any are.
    pub jwt: Option<Jwt>,
    /// The file that the keys of `jwt` were read from.
    pub jwks_file: Option<PathBuf>,
    /// How Envoy's rate limit service is answered.
    pub envoy: Envoy,
    /// What the files of `envoy.config` say.
    pub domains: Arc<Domains>,
    /// The headers that tell a client its limits; none where it is empty.
    pub headers: Vec<HeaderStyle>,
    /// How keys show in logs and in the audit.
    pub privacy: Privacy,
    /// What is logged.
    pub log: Log,
    /// How it stops.
    pub drain: Drain,
    /// What peers are held to.
    pub limits: Bounds,
    fixed: restart::Fixed,
}

/// Where it listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listen {
    /// For HTTP.
    pub http: Address,
    /// For Envoy's rate limit service.
    pub grpc: Address,
    /// For clients of Redis.
    pub resp: Address,
    /// For metrics.
    pub metrics: Address,
    /// TLS on all of them.
    pub tls: Option<TlsConfig>,
}

/// The files that TLS needs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TlsConfig {
    /// The certificate and those that lead to it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// What a client's certificate must lead to, if clients are to show one.
    pub client_ca: Option<PathBuf>,
    /// The name that a client's certificate must have too, of a host or an address. No field of the
    /// file says it.
    pub client_name: Option<String>,
}

impl TlsConfig {
    /// With no certificate asked of clients.
    #[must_use]
    pub fn new(cert: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        TlsConfig { cert: cert.into(), key: key.into(), client_ca: None, client_name: None }
    }
}

/// What peers are held to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The most bytes of a key, at most 65,536.
    pub key_bytes: usize,
    /// The most bytes of a body.
    pub body: usize,
    /// The most checks of a request, at most 32.
    pub checks: usize,
    /// The most connections at a time.
    pub connections: usize,
    /// How long the head of a request may take, and how long its body.
    pub header_timeout: Duration,
    /// How long a connection may be without a request.
    pub idle: Duration,
    /// The most commands of a transaction, and the most that are decided before they are answered.
    pub pipeline: usize,
    /// How long a connection of gRPC lives.
    pub connection_age: Duration,
}

impl Default for Config {
    /// What the table says of every field, with no policy.
    fn default() -> Self {
        match Layers::new().partial() {
            Ok(partial) => partial.config,
            Err(error) => unreachable!("the defaults are read in every test: {error}"),
        }
    }
}
