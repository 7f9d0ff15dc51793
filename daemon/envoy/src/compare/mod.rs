//! Comparison with another rate limit service during a migration: that service answers, Tollgate decides
//! beside it, and disagreements are counted and logged.

mod client;
mod counts;

use std::sync::Arc;

use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper::header::HeaderMap;
use tokio::sync::oneshot;
use tollgate_config::{CompareOptions, Scope};
use tollgate_engine::{ActiveConfig, Engine, Remote};
use tollgate_http::RequestHead;
use tonic::Status;

use self::client::Clients;
pub use self::counts::{ComparedPolicy, ComparedRequests};
use self::counts::{Counts, Sides};
use crate::error::EnvoyError;
use crate::{EnvoyContext, EnvoyState, answer, descriptor};

/// The state of comparisons.
#[derive(Debug, Default)]
pub struct Comparison {
    clients: Clients,
    counts: Counts,
}

impl Comparison {
    /// The requests by result.
    pub fn requests(&self) -> ComparedRequests {
        self.counts.requests()
    }

    /// The compared descriptors by policy, sorted by name.
    pub fn policies(&self) -> Vec<ComparedPolicy> {
        self.counts.policies()
    }
}

/// A call that the other service answers, and that Tollgate decides beside it.
#[derive(Debug)]
pub(crate) struct ComparisonCall {
    pub(crate) engine: Arc<Engine>,
    pub(crate) state: Arc<EnvoyState>,
    pub(crate) remote: Arc<Remote>,
    pub(crate) active: Arc<ActiveConfig>,
    pub(crate) headers: HeaderMap,
    pub(crate) request: RateLimitRequest,
}

impl ComparisonCall {
    /// Returns the answer of the other service, or its failure. Tollgate's own decision is made in a
    /// task, so that it delays no answer.
    ///
    /// # Errors
    /// The client is not authorized, or the other service fails.
    pub(crate) async fn answer(
        self,
        options: &CompareOptions,
    ) -> Result<RateLimitResponse, Status> {
        self.state.stats.calls.increment();
        // An unauthorized client reaches neither service.
        self.authorize().await?;
        let call = Arc::new(self);
        let (sender, other) = oneshot::channel();
        tokio::spawn(Arc::clone(&call).compare(other));
        let clients = &call.state.comparison.clients;
        let answer = clients.call(options, &call.headers, &call.request).await;
        // The task has ended if the runtime stops.
        let _ = sender.send(answer.clone());
        answer
    }

    async fn authorize(&self) -> Result<(), EnvoyError> {
        let context = self.authenticate().await?;
        context.request.principal.authorize(&[Scope::Check], "ShouldRateLimit")?;
        descriptor::authorize_all(&context, &self.request)
    }

    async fn authenticate(&self) -> Result<EnvoyContext<'_>, EnvoyError> {
        let ComparisonCall { engine, state, remote, active, headers, .. } = self;
        let head = RequestHead::without_target(headers);
        Ok(EnvoyContext::authenticate(state, engine, active, remote, head).await?)
    }

    /// Decides, and compares the answer with that of the other service.
    async fn compare(self: Arc<Self>, other: oneshot::Receiver<Result<RateLimitResponse, Status>>) {
        let context = self.authenticate().await;
        let own = match &context {
            Ok(context) => answer::answer_with_descriptors(context, &self.request).await,
            Err(error) => Err(error.clone()),
        };
        let cancelled = |_| Err(Status::cancelled("the client did not wait for the answer"));
        let other = other.await.unwrap_or_else(cancelled);
        let (counts, now) = (&self.state.comparison.counts, self.engine.clock().now());
        match (other, own) {
            (Err(error), _) => counts.count_failure_of_other(now, &error),
            (Ok(_), Err(error)) => counts.count_own_failure(now, &error.into()),
            (Ok(other), Ok((own, descriptors))) => {
                let sides = Sides { descriptors: &descriptors, other: &other, own: &own };
                counts.compare(&self.active, now, &self.request, sides);
            }
        }
    }
}
