//! The daemon: composes the protocols; reload, drain, health and metrics.
//!
//! The caller binds the sockets, opens the store and decides when to stop:
//!
//! ```no_run
//! use tollgate_daemon::{Config, Listeners, run};
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
mod counted_body;
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

pub use metrics::{FAMILIES, Family, FamilyKind};
pub use named_files::check_files;
pub use reload::Reload;
pub use serve::{Stop, run};
pub use snapshot_task::SnapshotTask;
pub use tollgate_config::{
    Address, CompareOptions, CompatHeaders, CompatHealth, Config, ConfigError, ConfigErrors,
    FailureMode, FileLocation, HeaderStyle, Layers, Listen, LoadedConfig, Log, LogFormat, LogLevel,
    NearLimit, Operators, Privacy, Scope, StoreUrl, TlsConfig, TokenConfig, TokenSecret,
    XdsOptions, XdsTls, config_schema, domain_file_warnings, has_domains, has_no_domain_files,
    read_overrides,
};
pub use tollgate_descriptors::Charging;
pub use tollgate_document::did_you_mean;
pub use tollgate_engine::DECISIONS;
pub use tollgate_http::decision_json;
pub use tollgate_resp::{RespReplay, resp_reference};
pub use tollgate_rules as rules;
pub use tollgate_transport::{ListenAddress, Listener, Listeners, Tls};
