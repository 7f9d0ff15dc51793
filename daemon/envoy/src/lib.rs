//! Envoy's rate limit service, `envoy.service.ratelimit.v3`, and its quota service,
//! `envoy.service.rate_limit_quota.v3`, with health checks and reflection, and the configuration
//! from a control plane.
//!
//! `connection.rs` routes the requests of a gRPC connection; `json` is the same service over HTTP.
//! With `envoy.compare`, `compare` answers a gRPC call with the answer of another service.
//! Both call `answer.rs`: `descriptor.rs` finds the limit of each descriptor, `execution.rs`
//! executes them, and `descriptor_status.rs` builds the statuses.

mod answer;
mod compare;
mod connection;
mod deadline;
mod descriptor;
mod descriptor_status;
mod endpoint;
mod error;
mod execution;
mod headers;
mod health;
mod json;
mod metadata;
mod policy_target;
mod quota;
mod reflection;
mod stats;
pub mod xds;

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper::header::HeaderMap;
use tollgate_engine::{
    ActiveConfig, Engine, Error, LogThrottle, MAX_QUOTED_LEN, Remote, RequestContext, Surface,
};
use tollgate_http::{RequestHead, TokenHeader, authenticate, traceparent};
use tonic::Status;

pub use self::compare::{ComparedPolicy, ComparedRequests, Comparison};
pub use self::connection::{Body, GrpcConnection, MessageLen};
use self::error::EnvoyError;
pub use self::json::answer as answer_json;
pub use self::quota::QuotaStats;
pub use self::stats::{RuleCounts, Stats};
use self::xds::Discovery;

/// The state of the rate limit service.
#[derive(Debug, Default)]
pub struct EnvoyState {
    /// The statistics of envoyproxy/ratelimit.
    pub stats: Stats,
    /// The counters of the quota service.
    pub quota: QuotaStats,
    /// The comparison with another rate limit service.
    pub comparison: Comparison,
    /// The state of the connection to the control plane.
    pub discovery: Arc<Discovery>,
    /// Requests of domains without limits.
    unknown_domains: LogThrottle,
    /// Requests in JSON that are not answered.
    rejected_json: LogThrottle,
}

/// Answers a call of the rate limit service with these headers.
///
/// # Errors
/// No decision was made. By default Envoy then admits its client.
pub async fn answer_call(
    engine: &Engine,
    state: &EnvoyState,
    remote: &Remote,
    headers: &HeaderMap,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    state.stats.calls.increment();
    let active = engine.active();
    let head = RequestHead::without_target(headers);
    let context = EnvoyContext::authenticate(state, engine, &active, remote, head)
        .await
        .map_err(EnvoyError::from)?;
    Ok(answer::answer(&context, request).await?)
}

/// The context of one request.
#[derive(Clone, Copy, Debug)]
struct EnvoyContext<'a> {
    request: RequestContext<'a>,
    state: &'a EnvoyState,
    remote: &'a Remote,
    headers: &'a HeaderMap,
}

impl<'a> EnvoyContext<'a> {
    /// Authenticates a request by its headers.
    async fn authenticate(
        state: &'a EnvoyState,
        engine: &'a Engine,
        active: &'a ActiveConfig,
        remote: &'a Remote,
        head: RequestHead<'a>,
    ) -> Result<Self, Error> {
        let header = TokenHeader::Authorization;
        let principal = authenticate(engine, active, remote, head, header).await?;
        let headers = head.headers;
        let traceparent = traceparent(headers);
        let surface = Surface::Envoy;
        let request = RequestContext { engine, active, principal, surface, traceparent };
        Ok(EnvoyContext { request, state, remote, headers })
    }
}

/// The beginning of a text from a client or another service, for messages.
fn bounded(text: &str) -> String {
    text.chars().take(MAX_QUOTED_LEN).collect()
}
