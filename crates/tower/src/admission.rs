//! Admitted requests: what the handler sees, and what is released afterwards.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::response::Parts as ResponseParts;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tollgate::{
    Check, Cost, Decision, Id, Limiter, Operation, Policy, Reason, Request, RequestError,
    StoreError,
};

use crate::layer::{Charging, Config};
use crate::rule::RuleCheck;
use crate::task::{Completed, complete};

/// A lease is renewed after this part of its length, so that one failed renewal does not lose it.
const RENEWALS_PER_LEASE: u32 = 3;

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
    decisions: Vec<Decision>,
    /// Keeps the leases, and releases them when it is dropped.
    _lease: Option<Lease>,
    /// The admission by a layer further outside.
    outer: Option<Admission>,
}

impl Admission {
    pub(crate) fn new(
        config: &Arc<Config>,
        checks: Vec<RuleCheck>,
        decisions: Vec<Decision>,
        outer: Option<Admission>,
    ) -> Self {
        let _lease = Lease::new(config, &checks, &decisions);
        Admission(Arc::new(Inner { config: Arc::clone(config), checks, decisions, _lease, outer }))
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
        self.0.checks.iter().map(|check| &check.policy).zip(&self.0.decisions)
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

/// The leases of a request. They are renewed until this is dropped, and then released.
struct Lease {
    config: Arc<Config>,
    held: Arc<[(RuleCheck, Id)]>,
    renewal: Option<AbortHandle>,
    runtime: Option<Handle>,
}

impl Lease {
    fn new(config: &Arc<Config>, checks: &[RuleCheck], decisions: &[Decision]) -> Option<Self> {
        let leased = checks.iter().zip(decisions);
        let held: Arc<[_]> =
            leased.filter_map(|(check, decision)| Some((check.clone(), decision.lease?))).collect();
        let limits = held.iter().flat_map(|(check, _)| check.policy.limits());
        let leases = limits.filter(|limit| limit.is_concurrent());
        let shortest = leases.map(|limit| Duration::from(limit.spec().window)).min()?;
        let runtime = Handle::try_current().ok();
        let renewal = runtime.as_ref().map(|runtime| {
            let renewal =
                renew(Arc::clone(config), Arc::clone(&held), shortest / RENEWALS_PER_LEASE);
            runtime.spawn(renewal).abort_handle()
        });
        Some(Lease { config: Arc::clone(config), held, renewal, runtime })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(renewal) = &self.renewal {
            renewal.abort();
        }
        let release = self.held.iter().map(|(check, lease)| {
            (Operation::Release { lease: *lease }, check.clone(), Cost::ZERO)
        });
        let release = execute(Arc::clone(&self.config), release.collect());
        complete(self.runtime.as_ref(), release);
    }
}

async fn renew(config: Arc<Config>, held: Arc<[(RuleCheck, Id)]>, interval: Duration) {
    loop {
        tokio::time::sleep(interval).await;
        let renewals = held
            .iter()
            .map(|(check, lease)| (Operation::Renew { lease: *lease }, check.clone(), Cost::ZERO));
        execute(Arc::clone(&config), renewals.collect()).await;
    }
}

/// Executes independent operations, and reports their errors.
async fn execute(config: Arc<Config>, operations: Vec<(Operation, RuleCheck, Cost)>) {
    if operations.is_empty() {
        return;
    }
    let checks: Vec<_> = operations
        .iter()
        .map(|(_, check, cost)| [Check { policy: &check.policy, key: &check.key, cost: *cost }])
        .collect();
    let requests: Vec<_> = operations
        .iter()
        .zip(&checks)
        .map(|((operation, ..), checks)| Request {
            operation: *operation,
            checks,
            request_id: None,
        })
        .collect();
    for result in config.limiter.decide_batch(&requests).await {
        config.report(result);
    }
}

/// An admitted request that has no response yet. If it is dropped, its charge is undone, or made,
/// according to how far it got.
pub(crate) struct InFlight {
    admission: Admission,
    request_id: Option<Id>,
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
    pub(crate) fn new(admission: Admission, request_id: Option<Id>) -> Self {
        let runtime = Handle::try_current().ok();
        InFlight { admission, request_id, stage: Stage::Waiting, runtime }
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
        let inner = Arc::clone(&admission.0);
        let config = Arc::clone(&inner.config);
        let operations = match &config.charging {
            Charging::RefundIf(refund) if refund(response) => self.refunds(),
            Charging::ChargeIf(charge) if charge(response) => self.charges(),
            Charging::Settle(cost) => {
                let is_charged = inner.decisions.iter().any(|decision| charged(decision).is_some());
                let cost = cost(response).filter(|_| is_charged).zip(self.request_id);
                let settle = cost.map(|(cost, id)| settle(admission.clone(), id, cost));
                return (admission, settle.map(Completed::new));
            }
            Charging::Before | Charging::RefundIf(_) | Charging::ChargeIf(_) => Vec::new(),
        };
        let settlement = (!operations.is_empty()).then(|| execute(config, operations));
        (admission, settlement.map(Completed::new))
    }

    fn charged(&self) -> impl Iterator<Item = (&RuleCheck, Cost, &Decision)> {
        let inner = &self.admission.0;
        inner.checks.iter().zip(&inner.decisions).filter_map(|(check, decision)| {
            charged(decision)
                .filter(|_| has_quota(&check.policy))
                .map(|cost| (check, cost, decision))
        })
    }

    /// The operations that refund what was charged.
    fn refunds(&self) -> Vec<(Operation, RuleCheck, Cost)> {
        let refund = |(check, cost, decision): (&RuleCheck, Cost, &Decision)| {
            (Operation::Refund { time: Some(decision.time) }, check.clone(), cost)
        };
        self.charged().map(refund).collect()
    }

    /// The operations that charge what was only checked.
    fn charges(&self) -> Vec<(Operation, RuleCheck, Cost)> {
        let inner = &self.admission.0;
        let checks = inner.checks.iter().zip(&inner.decisions);
        checks
            .filter(|(check, decision)| {
                let is_listed = decision.reason == Reason::AllowList;
                check.cost > Cost::ZERO && has_quota(&check.policy) && !is_listed
            })
            .map(|(check, _)| (Operation::Penalize, check.clone(), check.cost))
            .collect()
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let config = &self.admission.0.config;
        let operations = match self.stage {
            Stage::Waiting => self.refunds(),
            Stage::Called if matches!(config.charging, Charging::ChargeIf(_)) => self.charges(),
            Stage::Called | Stage::Finished => return,
        };
        complete(self.runtime.as_ref(), execute(Arc::clone(config), operations));
    }
}

/// Whether a policy has a limit that is charged, in contrast to leases, which are released.
fn has_quota(policy: &Policy) -> bool {
    policy.limits().iter().any(|limit| !limit.is_concurrent())
}

/// What a decision charged, if it is certain.
fn charged(decision: &Decision) -> Option<Cost> {
    let is_charged = decision.changed && !decision.degraded && !decision.is_shadow_denial();
    Cost::new(decision.granted).filter(|cost| is_charged && *cost > Cost::ZERO)
}

/// Replaces the estimate by the actual cost, except for leases, whose cost cannot change.
async fn settle(admission: Admission, request_id: Id, actual: Cost) {
    let inner = &admission.0;
    let cost = |check: &RuleCheck| match check.policy.has_concurrent() {
        true => check.cost,
        false => actual,
    };
    let checks: Vec<_> = inner
        .checks
        .iter()
        .map(|check| Check { policy: &check.policy, key: &check.key, cost: cost(check) })
        .collect();
    let request_id = request_id.to_string();
    let request = Request {
        operation: Operation::Settle,
        checks: &checks,
        request_id: Some(request_id.as_bytes()),
    };
    match inner.config.limiter.decide(&request).await {
        // Request ids are remembered for a shorter time than this response took.
        Err(StoreError::Request(RequestError::UnknownCharge)) => {
            execute(Arc::clone(&inner.config), differences(&admission, actual)).await;
        }
        result => {
            inner.config.report(result);
        }
    }
}

/// The operations that turn what was charged into the actual cost.
fn differences(admission: &Admission, actual: Cost) -> Vec<(Operation, RuleCheck, Cost)> {
    let checks = admission.0.checks.iter().zip(&admission.0.decisions);
    let operations = checks.filter_map(|(check, decision)| {
        let estimate = charged(decision).filter(|_| !check.policy.has_concurrent())?;
        let more = Cost::new(actual.get().saturating_sub(estimate.get()))?;
        let less = Cost::new(estimate.get().saturating_sub(actual.get()))?;
        let refund = Operation::Refund { time: Some(decision.time) };
        match (more > Cost::ZERO, less > Cost::ZERO) {
            (true, _) => Some((Operation::Penalize, check.clone(), more)),
            (_, true) => Some((refund, check.clone(), less)),
            _ => None,
        }
    });
    operations.collect()
}
