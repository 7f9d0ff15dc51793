//! Envoy's rate limit service, `envoy.service.ratelimit.v3`, with health checks and reflection, and
//! its configuration from a control plane.
//!
//! `connection.rs` routes the requests of a gRPC connection; `json` is the same service over HTTP.
//! Both call `answer.rs`: `descriptor.rs` finds the limit of each descriptor, `execution.rs`
//! executes them, and `descriptor_status.rs` builds the statuses.

mod answer;
mod connection;
mod deadline;
mod descriptor;
mod descriptor_status;
mod error;
mod execution;
mod headers;
mod health;
mod json;
mod metadata;
mod policy_target;
mod reflection;
mod stats;
pub mod xds;

use std::sync::Arc;

use hyper::header::HeaderMap;
use tollgate_engine::{ActiveConfig, Engine, Error, LogThrottle, Remote, RequestContext, Surface};
use tollgate_http::{TokenHeader, authenticate, traceparent};

pub use self::connection::{Body, GrpcConnection};
pub use self::json::answer as answer_json;
pub use self::stats::{RuleCounts, Stats};
use self::xds::Discovery;

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

/// The context of one request.
#[derive(Clone, Copy, Debug)]
struct EnvoyContext<'a> {
    request: RequestContext<'a>,
    state: &'a EnvoyState,
    headers: &'a HeaderMap,
}

impl<'a> EnvoyContext<'a> {
    /// Authenticates a request by its headers.
    fn authenticate(
        state: &'a EnvoyState,
        engine: &'a Engine,
        active: &'a ActiveConfig,
        remote: &Remote,
        headers: &'a HeaderMap,
    ) -> Result<Self, Error> {
        let principal = authenticate(engine, active, remote, headers, TokenHeader::Authorization)?;
        let traceparent = traceparent(headers);
        let surface = Surface::Envoy;
        let request = RequestContext { engine, active, principal, surface, traceparent };
        Ok(EnvoyContext { request, state, headers })
    }
}
