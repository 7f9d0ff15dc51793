//! The implementation of the gRPC service.

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::{Request, Response, Status};

use super::answer::answer;
use tollgate_engine::{Engine, Remote, RequestContext, Surface};

use super::error::EnvoyError;
use super::{EnvoyContext, EnvoyState};
use tollgate_http::{TokenHeader, authenticate, traceparent};

/// The rate limit service of one connection.
#[derive(Debug)]
pub(super) struct Service {
    engine: Arc<Engine>,
    state: Arc<EnvoyState>,
    remote: Arc<Remote>,
}

impl Service {
    pub(super) fn new(engine: Arc<Engine>, state: Arc<EnvoyState>, remote: Arc<Remote>) -> Self {
        Service { engine, state, remote }
    }
}

#[tonic::async_trait]
impl RateLimitService for Service {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let headers = metadata.as_ref();
        self.state.stats.count_call();
        let active = self.engine.active();
        let header = TokenHeader::Authorization;
        let principal = authenticate(&self.engine, &active, &self.remote, headers, header)
            .map_err(EnvoyError::from)?;
        let request = RequestContext {
            engine: &self.engine,
            active: &active,
            principal,
            surface: Surface::Envoy,
            traceparent: traceparent(headers),
        };
        let context = EnvoyContext { request, state: &self.state, headers };
        Ok(Response::new(answer(&context, &message).await?))
    }
}
