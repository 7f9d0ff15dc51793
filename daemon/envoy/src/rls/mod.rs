//! Envoy's rate limit service, `envoy.service.ratelimit.v3`, with health checks and reflection.
//!
//! `peer.rs` routes the requests of a gRPC connection, and `service.rs` authenticates calls. Then
//! `answer.rs` leads: `descriptor.rs` finds the limit of each descriptor, `execution.rs` executes
//! them, and `descriptor_status.rs` builds the statuses. `json.rs` is the same service over HTTP.

mod answer;
mod body;
mod count;
mod deadline;
mod descriptor;
mod descriptor_status;
mod error;
mod execution;
mod headers;
mod health;
mod json;
mod metadata;
mod peer;
mod policy_target;
mod reflection;
mod service;
mod stats;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use hyper::header::HeaderMap;
use tollgate_engine::{LogThrottle, RequestContext};

pub use self::body::Body;
pub use self::json::answer as answer_json;
pub use self::peer::GrpcConnection;
pub use self::stats::{RuleCounts, Stats};
use crate::xds::Discovery;

/// The state of the rate limit service.
#[derive(Debug, Default)]
pub struct EnvoyState {
    /// The statistics of envoyproxy/ratelimit.
    pub stats: Stats,
    /// The state of the connection to the control plane.
    pub discovery: Arc<Discovery>,
    /// Requests of domains without limits.
    unknown_domains: LogThrottle,
}

/// What a request is answered with.
#[derive(Clone, Copy, Debug)]
struct EnvoyContext<'a> {
    request: RequestContext<'a>,
    state: &'a EnvoyState,
    headers: &'a HeaderMap,
}
