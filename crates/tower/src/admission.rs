//! Admitted requests: what the handler sees, and what is released afterwards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::response::Parts as ResponseParts;
use tokio::runtime::Handle;
use tollgate::task::{Completed, complete};
use tollgate::{
    Answer, Cost, Decision, Id, Limiter, Operation, Permit, Policy, Reason, Request, StoreError,
};

use crate::layer::{Charging, Config};
use crate::rule::RuleCheck;

/// The decisions about an admitted request, in the extensions of the request.
///
/// The leases of concurrency limits are held until the body of the response has ended and all clones
/// of this value are dropped. A handler that works on after its response, such as that of a WebSocket,
/// keeps a clone for as long.
///
/// # Examples
/// ```
/// use http::Request;
/// use tollgate_tower::Admission;
///
/// async fn handle<B>(request: Request<B>) -> String {
///     let admission = request.extensions().get::<Admission>();
///     let remaining = admission.and_then(Admission::remaining);
///     format!("{remaining:?} requests remain")
/// }
/// ```
#[derive(Clone)]
pub struct Admission(Arc<Inner>);

struct Inner {
    config: Arc<Config>,
    checks: Vec<RuleCheck>,
    /// Has the decisions, and holds the leases.
    permit: Permit,
    /// The admission by a layer further outside.
    outer: Option<Admission>,
}

impl Admission {
    pub(crate) fn new(
        config: &Arc<Config>,
        checks: Vec<RuleCheck>,
        answer: Answer,
        outer: Option<Admission>,
        request_id: Option<Id>,
    ) -> Self {
        let borrowed: Vec<_> = checks.iter().map(RuleCheck::borrow).collect();
        let permit = Permit::from_answer(&config.limiter, &borrowed, answer, request_id);
        let permit = permit.on_error(Arc::clone(&config.on_error));
        Admission(Arc::new(Inner { config: Arc::clone(config), checks, permit, outer }))
    }

    /// The policies that were checked and the decisions, in the order of the layers from the outside
    /// and of their rules.
    pub fn decisions(&self) -> impl Iterator<Item = (&Policy, &Decision)> {
        let mut layers = vec![self];
        while let Some(outer) = layers.last().and_then(|layer| layer.0.outer.as_ref()) {
            layers.push(outer);
        }
        layers.into_iter().rev().flat_map(|layer| layer.own_decisions())
    }

    /// The decisions of the innermost layer.
    pub(crate) fn own_decisions(&self) -> impl Iterator<Item = (&Policy, &Decision)> + Clone {
        self.0.checks.iter().map(|check| &check.policy).zip(self.0.permit.decisions())
    }

    /// The greatest cost that all policies would still admit; `None` if no limit was checked. Shadow
    /// policies do not count.
    #[must_use]
    pub fn remaining(&self) -> Option<u64> {
        let checked = self.decisions().filter(|(_, decision)| !decision.shadow);
        let limits = checked.flat_map(|(_, decision)| decision.each_limit());
        limits.map(|limit| limit.remaining).min()
    }

    /// Whether a decision was made without the store because it is unavailable.
    #[must_use]
    pub fn is_degraded(&self) -> bool {
        self.decisions().any(|(_, decision)| decision.degraded)
    }

    /// How long the request had to wait in a queue before it reached the service.
    #[must_use]
    pub fn delay(&self) -> Duration {
        self.decisions()
            .map(|(_, decision)| Duration::from(decision.delay))
            .max()
            .unwrap_or_default()
    }

    /// Whether a layer has checked this policy and key with the same limiter, so that a layer that is
    /// applied twice charges once.
    pub(crate) fn has_checked(&self, limiter: &Limiter, check: &RuleCheck) -> bool {
        let is_same =
            |own: &RuleCheck| own.policy.shares_name(&check.policy) && own.key == check.key;
        (self.0.config.limiter.shares_state(limiter) && self.0.checks.iter().any(is_same))
            || self.0.outer.as_ref().is_some_and(|outer| outer.has_checked(limiter, check))
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys may be personal data.
        let decisions = self.decisions().map(|(policy, decision)| (policy.name(), decision));
        f.debug_map().entries(decisions).finish()
    }
}

/// An admitted request that has no response yet. If it is dropped, its charge is undone, or made,
/// according to how far it got.
pub(crate) struct InFlight {
    admission: Admission,
    stage: Stage,
    runtime: Option<Handle>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The inner service has not been called.
    Waiting,
    /// The inner service has been called.
    Called,
    /// The response has been seen.
    Finished,
}

impl InFlight {
    pub(crate) fn new(admission: Admission) -> Self {
        InFlight { admission, stage: Stage::Waiting, runtime: Handle::try_current().ok() }
    }

    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Notes that the inner service is called.
    pub(crate) fn call(&mut self) {
        self.stage = Stage::Called;
    }

    /// Notes the response. Returns the operation on the store that it requires.
    pub(crate) fn finish(mut self, response: &ResponseParts) -> (Admission, Option<Completed<()>>) {
        self.stage = Stage::Finished;
        let admission = self.admission.clone();
        let permit = &admission.0.permit;
        let change = match &admission.0.config.charging {
            Charging::RefundIf(refund) if refund(response) => Some(reported(permit.refund())),
            Charging::ChargeIf(is_charged) if is_charged(response) => {
                Some(Completed::new(charge(admission.clone())))
            }
            Charging::Settle(cost) => cost(response).map(|cost| reported(permit.settle_all(cost))),
            Charging::Before | Charging::RefundIf(_) | Charging::ChargeIf(_) => None,
        };
        (admission, change)
    }
}

/// The end of a change of a permit, which has reported an error.
fn reported(
    change: impl Future<Output = Result<(), StoreError>> + Send + 'static,
) -> Completed<()> {
    Completed::new(async move {
        let _ = change.await;
    })
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let runtime = self.runtime.as_ref();
        match self.stage {
            Stage::Waiting => {
                let refund = self.admission.0.permit.refund();
                complete(runtime, async move {
                    // The permit has reported an error.
                    let _ = refund.await;
                });
            }
            Stage::Called if matches!(self.admission.0.config.charging, Charging::ChargeIf(_)) => {
                complete(runtime, charge(self.admission.clone()));
            }
            Stage::Called | Stage::Finished => {}
        }
    }
}

/// Charges what was only checked, and reports errors.
async fn charge(admission: Admission) {
    let inner = &admission.0;
    let is_charged = |check: &RuleCheck, decision: &Decision| {
        check.cost > Cost::ZERO && check.policy.has_quota() && decision.reason != Reason::AllowList
    };
    let checks = inner.checks.iter().zip(inner.permit.decisions());
    let checks: Vec<_> = checks
        .filter(|(check, decision)| is_charged(check, decision))
        .map(|(check, _)| [check.borrow()])
        .collect();
    let (operation, request_id) = (Operation::Penalize, None);
    let requests: Vec<_> =
        checks.iter().map(|checks| Request { operation, checks, request_id }).collect();
    for result in inner.config.limiter.decide_batch(&requests).await {
        if let Err(error) = result {
            (inner.config.on_error)(&error);
        }
    }
}
