//! The configuration of Envoy's rate limit service from a control plane: a client of aggregated
//! discovery, state of the world (<https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol>).
//!
//! One stream over one connection at a time (`connect.rs`, `stream.rs`), and when it ends another
//! one, later and later (`backoff.rs`). Each answer is read whole (`answer.rs`) and holds, or is
//! refused to the server with the reason, and what held before stays.

mod answer;
mod backoff;
mod connect;
mod discovery;
mod files;
mod stream;

use std::sync::Arc;

use tokio::time::sleep;

pub use self::discovery::{Discovery, NoLimits};
pub use self::files::{FileError, file_errors};
use self::stream::Stream;
use tollgate_config::XdsOptions;
use tollgate_engine::Engine;

/// Follows a control plane until the task is dropped. `on_update` is called after each accepted
/// configuration.
pub async fn follow(
    options: XdsOptions,
    engine: Arc<Engine>,
    discovery: Arc<Discovery>,
    on_update: impl Fn(),
) {
    let mut stream = Stream::new(options, engine, discovery, on_update);
    loop {
        let why = stream.run().await;
        let wait = stream.lost(&why);
        sleep(wait).await;
    }
}
