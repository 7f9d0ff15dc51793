//! The configuration of Envoy's rate limit service from a control plane: a client of aggregated
//! discovery, state of the world (<https://www.envoyproxy.io/docs/envoy/latest/api-docs/xds_protocol>).
//!
//! The client has one connection with one stream at a time. When the stream ends, it connects again
//! after a backoff. It accepts or rejects each response as a whole; after a rejection the previous
//! configuration stays active.

mod connect;
mod discovery;
mod resources;
mod stream;

pub use self::connect::file_problems;
pub use self::discovery::{Discovery, NoLimits};
pub use self::stream::follow;
