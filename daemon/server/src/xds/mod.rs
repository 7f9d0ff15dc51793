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

pub(crate) use self::discovery::{Awaited, Discovery};
pub(crate) use self::files::{Mistake, mistakes};
use self::stream::Stream;
use crate::config::XdsOptions;
use crate::daemon::Daemon;

/// Follows a server, for ever.
pub(crate) async fn follow(options: XdsOptions, daemon: Arc<Daemon>) {
    let mut stream = Stream::new(options, daemon);
    loop {
        let why = stream.run().await;
        let wait = stream.lost(&why);
        sleep(wait).await;
    }
}
