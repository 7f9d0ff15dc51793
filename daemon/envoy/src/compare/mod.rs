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
use crate::answer;
use crate::error::EnvoyError;
use crate::{EnvoyContext, EnvoyState};

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

/// Whose requests are compared, and with what.
#[derive(Debug)]
pub(crate) struct Compared<'a> {
    pub(crate) engine: &'a Arc<Engine>,
    pub(crate) state: &'a Arc<EnvoyState>,
    pub(crate) remote: &'a Arc<Remote>,
    pub(crate) active: &'a ActiveConfig,
    pub(crate) options: &'a CompareOptions,
}

/// Answers a call with the answer of the other service, or with its failure. Tollgate's own decision is
/// made in a task, so that it delays no answer.
///
/// # Errors
/// The client is not authorized, or the other service fails.
pub(crate) async fn answer_call(
    compared: Compared<'_>,
    headers: &HeaderMap,
    request: &RateLimitRequest,
) -> Result<RateLimitResponse, Status> {
    let Compared { engine, state, remote, active, options } = compared;
    // An unauthorized client reaches neither service.
    let head = RequestHead::without_target(headers);
    let context = EnvoyContext::authenticate(state, engine, active, remote, head).await;
    let context = context.map_err(EnvoyError::from)?;
    let authorized = context.request.principal.authorize(&[Scope::Check], "ShouldRateLimit");
    authorized.map_err(EnvoyError::from)?;

    let (sender, other) = oneshot::channel();
    let decision = Decision {
        engine: Arc::clone(engine),
        state: Arc::clone(state),
        remote: Arc::clone(remote),
        headers: headers.clone(),
        request: request.clone(),
    };
    tokio::spawn(decision.compare(other));
    let answer = state.comparison.clients.call(options, headers, request).await;
    // The task has ended if the runtime stops.
    let _ = sender.send(answer.clone());
    answer
}

/// What the task that decides owns.
struct Decision {
    engine: Arc<Engine>,
    state: Arc<EnvoyState>,
    remote: Arc<Remote>,
    headers: HeaderMap,
    request: RateLimitRequest,
}

impl Decision {
    /// Decides, and compares the answer with that of the other service. If the client disconnects
    /// before that service has answered, there is nothing to compare.
    async fn compare(self, other: oneshot::Receiver<Result<RateLimitResponse, Status>>) {
        let Decision { engine, state, remote, headers, request } = self;
        let active = engine.active();
        let head = RequestHead::without_target(&headers);
        let context = EnvoyContext::authenticate(&state, &engine, &active, &remote, head).await;
        let own = match &context {
            Ok(context) => answer::answer_with_names(context, &request).await,
            Err(error) => Err(error.clone().into()),
        };
        let Ok(other) = other.await else { return };
        let counts = &state.comparison.counts;
        match (other, own) {
            (Err(_), _) => counts.count_failure_of_other(),
            (Ok(_), Err(error)) => {
                counts.count_own_failure(engine.clock().now(), &Status::from(error));
            }
            (Ok(other), Ok((own, names))) => {
                let sides = Sides { names: &names, other: &other, own: &own };
                counts.compare(&active, engine.clock().now(), &request, sides);
            }
        }
    }
}
