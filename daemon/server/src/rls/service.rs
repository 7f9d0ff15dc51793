//! The service's one call, from its message to its answer.

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_server::RateLimitService;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use tonic::{Request, Response, Status};

use super::answer::answer;
use super::refusal::Refusal;
use crate::daemon::Daemon;
use crate::http::{Bears, Caller, Exchange};
use crate::listener::Remote;

/// The rate limit service, for one peer.
#[derive(Debug)]
pub(super) struct Service {
    daemon: Arc<Daemon>,
    remote: Arc<Remote>,
}

impl Service {
    pub(super) fn new(daemon: Arc<Daemon>, remote: Arc<Remote>) -> Self {
        Service { daemon, remote }
    }
}

#[tonic::async_trait]
impl RateLimitService for Service {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let (metadata, _, message) = request.into_parts();
        let (daemon, remote) = (&*self.daemon, &*self.remote);
        daemon.rls.count_call();
        let live = daemon.live();
        let caller = Caller::of(remote, metadata.as_ref(), Bears::Authorization, &live.access);
        let caller = caller.map_err(|problem| {
            daemon.failures.add(daemon.clock.now(), remote);
            Refusal::from(problem)
        })?;
        let exchange = Exchange { daemon, live: &live, caller, record: None };
        Ok(Response::new(answer(&exchange, &message).await?))
    }
}
