//! Executing the descriptors of a request.

use std::borrow::Cow;

use tollgate::{Cost, Decision, Key, Operation, Policy, Reason};
use tollgate_engine::{
    Action, AuditRecord, Call, CheckRequest, Checks, Counting, Error, ErrorKind, Outcome,
};

use super::EnvoyContext;
use super::deadline::deadline_from;
use super::descriptor::{Descriptor, Hits, Target};
use super::error::EnvoyError;
use tollgate_config::{Charging, FailureMode};
use tollgate_http::Problem;

/// The calls of a request.
#[derive(Debug)]
struct Calls<'a, 'r> {
    context: &'r EnvoyContext<'r>,
    calls: Vec<Call<'a, 'r>>,
}

/// Where the results of a descriptor are.
#[derive(Clone, Copy, Debug, Default)]
struct ResultIndex {
    /// The call that peeked before the charge.
    peek: Option<usize>,
    /// The call, and the check in it; absent if nothing is executed.
    call: Option<(usize, usize)>,
    is_penalty: bool,
}

/// The result of a descriptor.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all descriptors are decided")]
pub(super) enum DescriptorOutcome {
    /// Nothing was executed.
    Skipped,
    /// It was decided.
    Decided {
        decision: Decision,
        /// The remainder before the charge, if that was peeked.
        remaining_before: Option<u64>,
        /// Whether it was charged although its cost exceeds the capacity.
        is_penalty: bool,
    },
    /// The store is unavailable, and the policy does not decide without it.
    Failed,
}

impl DescriptorOutcome {
    /// Whether the store had no part in it.
    pub(super) fn is_degraded(&self) -> bool {
        match self {
            DescriptorOutcome::Decided { decision, .. } => decision.degraded,
            DescriptorOutcome::Failed => true,
            DescriptorOutcome::Skipped => false,
        }
    }

    fn is_failed(&self) -> bool {
        matches!(self, DescriptorOutcome::Failed)
    }
}

/// Executes all descriptors.
pub(super) async fn execute(
    context: &EnvoyContext<'_>,
    descriptors: &[Descriptor<'_>],
) -> Result<Vec<DescriptorOutcome>, EnvoyError> {
    let mut calls = Calls { context, calls: Vec::new() };
    if let [descriptor] = descriptors
        && let Some(decision) = calls.check_now(descriptor)
    {
        let (remaining_before, is_penalty) = (None, false);
        return Ok(vec![DescriptorOutcome::Decided { decision, remaining_before, is_penalty }]);
    }
    let indices = match context.request.active.envoy.charging {
        Charging::Atomic => calls.add_together(descriptors),
        Charging::Reference => calls.add_each(descriptors),
    };
    calls.check_bound(context.request.active.bounds.checks)?;
    if calls.calls.is_empty() {
        return Ok(descriptors.iter().map(|_| DescriptorOutcome::Skipped).collect());
    }
    let is_shadow = context.request.active.envoy.shadow;
    calls.calls = calls.calls.into_iter().map(|call| call.with_shadow(is_shadow)).collect();
    let deadline = deadline_from(context.headers);
    let results = context.request.execute_each(&mut calls.calls, deadline).await;
    let outcomes: Vec<_> = indices.iter().map(|index| index.outcome(&results)).collect();
    check_results(context, descriptors, &results, &outcomes)?;
    Ok(outcomes)
}

/// Rejects a request that is invalid, of which nothing was decided, or of which a rule was not
/// decided although the configuration requires it.
fn check_results(
    context: &EnvoyContext<'_>,
    descriptors: &[Descriptor<'_>],
    results: &[Result<Outcome, Error>],
    outcomes: &[DescriptorOutcome],
) -> Result<(), EnvoyError> {
    let mut errors = results.iter().filter_map(|result| result.as_ref().err());
    if let Some(error) = errors.clone().find(|error| error.kind() != ErrorKind::StoreUnavailable) {
        return Err(error.clone().into());
    }
    let mut both = descriptors.iter().zip(outcomes);
    let requires_store = context.request.active.envoy.on_store_error == FailureMode::Error;
    if requires_store
        && both.any(|(descriptor, outcome)| descriptor.has_rule() && outcome.is_failed())
    {
        context.state.stats.store_errors.increment();
        return Err(EnvoyError::StoreUnavailable);
    }
    let is_decided =
        outcomes.iter().any(|outcome| matches!(outcome, DescriptorOutcome::Decided { .. }));
    match errors.next() {
        Some(error) if !is_decided => Err(error.clone().into()),
        _ => Ok(()),
    }
}

impl<'a, 'r> Calls<'a, 'r> {
    /// Decides the only descriptor of a request, if it is a plain check that needs no answer of the store.
    fn check_now(&self, descriptor: &Descriptor<'_>) -> Option<Decision> {
        let EnvoyContext { request, .. } = self.context;
        let (Some(policy), Hits::Charge(cost)) = (descriptor.target.policy(), descriptor.hits)
        else {
            return None;
        };
        // With `charging: reference`, higher costs are peeked first.
        let is_plain = request.active.envoy.charging == Charging::Atomic || cost == Cost::ONE;
        if !is_plain
            || request.active.envoy.shadow
            || descriptor.has_limit
            || descriptor.target.note().is_some()
            || policy.limits().iter().any(|limit| limit.counts_denied())
        {
            return None;
        }
        let key = Key::new(descriptor.target.key()).ok()?;
        request.check_now(policy, key, cost)
    }

    /// Charges all descriptors in one call, all or nothing. Refunds are independent.
    fn add_together(&mut self, descriptors: &'a [Descriptor<'a>]) -> Vec<ResultIndex> {
        let mut indices = vec![ResultIndex::default(); descriptors.len()];
        let (mut checks, mut audits) = (Vec::new(), Vec::new());
        for (descriptor, index) in descriptors.iter().zip(&mut indices) {
            if let (Some(policy), Hits::Charge(cost)) =
                (descriptor.target.policy(), descriptor.hits)
            {
                index.call = Some((0, checks.len()));
                audits.extend(self.limit_audit(descriptor).map(|audit| (checks.len(), audit)));
                checks.push(check(descriptor, policy, cost));
            }
        }
        if !checks.is_empty() {
            // Nothing is charged if the request is denied whatever the store decides.
            let is_denied = descriptors.iter().any(|descriptor| {
                let target = &descriptor.target;
                target.is_always_over() && !target.is_shadow() && !descriptor.is_quota(false)
            });
            let operation =
                if is_denied { Operation::Peek } else { Operation::Check { lease: None } };
            let call = Call::new(Action::Execute(operation), Checks::Several(checks));
            let charged =
                descriptors.iter().zip(&indices).filter(|(_, index)| index.call.is_some());
            let requires_store =
                charged.clone().any(|(descriptor, _)| self.requires_store(descriptor));
            let call = call.with_counting(Counting::Answer);
            let mut call = call.with_store_required(requires_store);
            for (index, audit) in audits {
                call = call.with_audit_of(index, audit);
            }
            self.calls.push(call);
        }
        for (descriptor, index) in descriptors.iter().zip(&mut indices) {
            self.add_refund(descriptor, index);
        }
        indices
    }

    /// Executes each descriptor on its own.
    fn add_each(&mut self, descriptors: &'a [Descriptor<'a>]) -> Vec<ResultIndex> {
        let mut indices = vec![ResultIndex::default(); descriptors.len()];
        for (descriptor, index) in descriptors.iter().zip(&mut indices) {
            if let (Some(policy), Hits::Charge(cost)) =
                (descriptor.target.policy(), descriptor.hits)
            {
                if cost > Cost::ONE {
                    index.peek = Some(self.add_peek(descriptor, policy));
                }
                // envoyproxy/ratelimit also charges a cost that exceeds the limit.
                index.is_penalty = is_charged_above_capacity(policy, cost);
                let (operation, counting) = match index.is_penalty {
                    true => (Operation::Penalize, Counting::Never),
                    false => (Operation::Check { lease: None }, Counting::Answer),
                };
                let call = call(operation, check(descriptor, policy, cost), counting)
                    .with_store_required(self.requires_store(descriptor));
                let audit = self.limit_audit(descriptor);
                index.call = Some((self.add(call, audit), 0));
            }
            self.add_refund(descriptor, index);
        }
        indices
    }

    fn add_refund(&mut self, descriptor: &'a Descriptor<'a>, index: &mut ResultIndex) {
        if let (Some(policy), Hits::Refund(cost)) = (descriptor.target.policy(), descriptor.hits) {
            let operation = Operation::Refund { time: None };
            let call = call(operation, check(descriptor, policy, cost), Counting::Nothing)
                .with_store_required(self.requires_store(descriptor));
            let audit = self.audit("refund", descriptor);
            index.call = Some((self.add(call, Some(audit)), 0));
        }
    }

    fn add_peek(&mut self, descriptor: &'a Descriptor<'a>, policy: &'a Policy) -> usize {
        let check = check(descriptor, policy, Cost::ZERO);
        self.add(call(Operation::Peek, check, Counting::Nothing), None)
    }

    /// Adds a call. Returns its index.
    fn add(&mut self, call: Call<'a, 'r>, audit: Option<AuditRecord<'r>>) -> usize {
        self.calls.push(match audit {
            Some(audit) => call.with_audit(audit),
            None => call,
        });
        self.calls.len() - 1
    }

    /// Whether the request is an error if the store has no part in this descriptor.
    fn requires_store(&self, descriptor: &Descriptor<'_>) -> bool {
        let on_store_error = self.context.request.active.envoy.on_store_error;
        on_store_error == FailureMode::Error && descriptor.has_rule()
    }

    /// The audit record of a limit that the request sets in place of a policy's. Those in place of
    /// a rule's are the protocol's ordinary use, possibly of every request, and have none.
    fn limit_audit(&self, descriptor: &Descriptor<'_>) -> Option<AuditRecord<'r>> {
        let is_policy = matches!(descriptor.target, Target::Policy(_));
        (is_policy && descriptor.has_limit).then(|| self.audit("limit", descriptor))
    }

    fn audit(&self, operation: &'static str, descriptor: &Descriptor<'_>) -> AuditRecord<'r> {
        let EnvoyContext { request, remote, .. } = self.context;
        let mut audit = request.engine.audit(operation, Some(request.principal), remote);
        let policy = descriptor.target.policy().map_or("", Policy::name);
        audit.set_subject(request.active, policy, descriptor.target.key().as_bytes());
        audit
    }

    /// Rejects a request with more checks in one call than allowed.
    fn check_bound(&self, max: usize) -> Result<(), EnvoyError> {
        let checks = self.calls.first().map_or(0, |call| call.checks.as_slice().len());
        if checks <= max {
            return Ok(());
        }
        Err(Problem::bad_request(format!(
            "{checks} descriptors have limits, more than the {max} that can be charged all or \
             nothing; send fewer, or set envoy.charging to reference"
        ))
        .into())
    }
}

/// A call with one check.
fn call<'a, 'r>(operation: Operation, check: CheckRequest<'a>, counting: Counting) -> Call<'a, 'r> {
    Call::new(Action::Execute(operation), Checks::One(check)).with_counting(counting)
}

fn check<'a>(descriptor: &'a Descriptor<'_>, policy: &'a Policy, cost: Cost) -> CheckRequest<'a> {
    let key = Cow::Borrowed(descriptor.target.key().as_bytes());
    let request = CheckRequest::new(Cow::Borrowed(policy), key, cost);
    request.with_shortened_note(descriptor.target.note().map(str::as_bytes))
}

/// Whether a cost exceeds the capacity of a policy that charges denied requests too.
fn is_charged_above_capacity(policy: &Policy, cost: Cost) -> bool {
    let mut limits = policy.limits().iter();
    limits.clone().all(|limit| limit.counts_denied())
        && limits.any(|limit| cost.get() > limit.capacity())
}

impl ResultIndex {
    fn outcome(self, results: &[Result<Outcome, Error>]) -> DescriptorOutcome {
        let Some((call, check)) = self.call else { return DescriptorOutcome::Skipped };
        let Ok(outcome) = &results[call] else { return DescriptorOutcome::Failed };
        let mut decision = outcome.decision(check).clone();
        if self.is_penalty {
            (decision.allowed, decision.never) = (false, true);
            decision.reason = Reason::Never;
        }
        let peeked = self.peek.and_then(|peek| results[peek].as_ref().ok());
        let remaining_before = peeked
            .map(|outcome| outcome.decision(0))
            .filter(|decision| !decision.degraded)
            .map(|decision| decision.remaining);
        DescriptorOutcome::Decided { decision, remaining_before, is_penalty: self.is_penalty }
    }
}
