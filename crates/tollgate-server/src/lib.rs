//! The daemon: listeners, the `/v1` interface, the configuration file.
//!
//! The caller binds the sockets, opens the store and says when to stop:
//!
//! ```no_run
//! use tollgate_server::{Config, Listeners, run};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::of_limits("10/s burst 20")?;
//! let http = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! run(config, Listeners { http }, tollgate::MemoryLimiter::new(), std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod config;
mod connection;
mod daemon;
mod http;
mod keeper;
mod live;
mod nearest;
mod pulse;
mod serve;
mod store_watch;

pub use config::{Bounds, Config, ConfigError, Drain, HeaderStyle, Listen, StoreConfig, StoreUrl};
pub use http::decision_json;
pub use keeper::Keeper;
pub use serve::{Listeners, run};
