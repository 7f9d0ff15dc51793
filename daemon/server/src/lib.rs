//! The daemon: listeners, the `/v1` interface, the configuration file.
//!
//! The caller binds the sockets, opens the store and says when to stop:
//!
//! ```no_run
//! use tollgate_server::{Config, Listeners, run};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::from_limits("10/s burst 20")?;
//! let http = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! let listeners = Listeners { http: Some(http.into()), ..Listeners::default() };
//! let limiter = tollgate::MemoryLimiter::new();
//! run(config, listeners, limiter, None, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod accept;
mod debug;
mod metrics;
mod named_files;
mod probes;
mod reload;
mod router;
mod serve;
mod services;
mod serving;
mod snapshot_task;
mod store_watch;

pub use tollgate_descriptors as ratelimit;
pub use tollgate_rules as rules;

use tollgate_config as config;
use tollgate_rules::query;

pub use metrics::{FAMILIES, Family, FamilyKind};
pub use named_files::check_files;
pub use reload::Reload;
pub use serve::{Stop, run};
pub use snapshot_task::SnapshotTask;
pub use tollgate_config::{
    Address, Bounds, CompatHeaders, CompatHealth, CompatOptions, Config, ConfigError, ConfigErrors,
    Drain, Envoy, FileLocation, HeaderStyle, Layers, Listen, LoadedConfig, Log, LogFormat,
    LogLevel, NearLimit, OverridesFile, OverridesFileError, Password, Privacy, RuleOnStoreError,
    Scope, StoreConfig, StoreUrl, TlsConfig, TokenConfig, TokenSecret, XdsError, XdsOptions,
    XdsTls, config_fields, config_reference, config_schema, has_no_domain_files, read_overrides,
};
pub use tollgate_descriptors::Charging;
pub use tollgate_engine::DECISIONS;
pub use tollgate_http::decision_json;
pub use tollgate_resp::{RespReplay, resp_reference};
pub use tollgate_transport::{ListenAddress, ListenError, Listener, Listeners, Tls, TlsError};
