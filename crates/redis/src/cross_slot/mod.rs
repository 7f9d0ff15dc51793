//! Requests with keys in several partitions of a cluster, which no single call can decide.
//!
//! First, every partition is peeked at, which charges nothing. Only if all admit, each is charged. If
//! one then denies, because of a concurrent request, the others are compensated: they are refunded
//! exactly what they were charged. So no request is admitted that a single call would deny. A request
//! may be denied while another request with several partitions on one of its keys is in progress. If
//! the process dies in between, charges remain until they recover.
//!
//! - A request with an id makes an attempt, which `attempt.rs` describes.
//! - A denial is counted, for limits that count denials, in the partitions that deny by themselves.
//! - Checks of shadow policies do not affect the decision, and are decided separately. If the request
//!   has an id, they are decided after the other checks, and recorded in their own partitions if the
//!   request was admitted, so that a repeat does not charge them again. If all checks are shadows, the
//!   first partition represents the request.

mod attempt;
mod parts;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_core::{Decision, Id, Micros, Operation, Reason};
use tollgate_store::{Answer, FailureKind, StoreError};

use crate::compensation::{COMPENSATION_TIMEOUT, compensation, lease_of};
use crate::context::StoreContext;
use crate::request::{
    self, Delivery, Outcome, PendingRequest, RecordScope, RequestName, Role, StoreRequest,
};
use crate::topology::Routes;
use parts::{Part, Parts};

/// A request with keys in several partitions.
pub(crate) struct CrossSlotRequest<'a> {
    pub(crate) dispatcher: &'a Dispatcher,
    pub(crate) request: &'a StoreRequest,
    pub(crate) deadline: Instant,
}

/// Sends requests to the nodes of their keys.
#[derive(Clone, Debug)]
pub(crate) struct Dispatcher {
    pub(crate) context: Arc<StoreContext>,
    pub(crate) routes: Arc<Routes>,
}

impl Dispatcher {
    /// Sends a request with all keys in one partition.
    pub(crate) fn send(
        &self,
        request: StoreRequest,
        partition: u16,
        deadline: Instant,
    ) -> oneshot::Receiver<Outcome> {
        let (pending, receiver) = PendingRequest::new(request, partition, Instant::now(), deadline);
        self.routes.submit(pending);
        receiver
    }

    /// Takes back the charge of a request whose caller did not wait for the answer. A request with
    /// an id keeps its charge, because its repeat gets the recorded answer.
    pub(crate) fn reconcile(&self, request: &StoreRequest, answer: &Answer) {
        if request.name.is_some() {
            return;
        }
        for undo in compensation(request.operation, &request.checks, &answer.decisions) {
            self.context.counters.lock().reconciled += 1;
            self.send_compensation(undo);
        }
    }

    fn send_compensation(&self, undo: StoreRequest) {
        let Some(check) = undo.checks.first() else { return };
        let partition = self.context.keyspace.partition_of(&check.key);
        let now = Instant::now();
        let deadline = now + COMPENSATION_TIMEOUT;
        self.routes.submit(PendingRequest::compensation(undo, partition, now, deadline));
    }
}

impl CrossSlotRequest<'_> {
    /// Decides the request; `is_wanted` returns whether the caller still waits for the answer.
    pub(crate) async fn decide(&self, is_wanted: impl Fn() -> bool) -> Result<Answer, StoreError> {
        let request = self.request;
        let parts = Parts::new(request, &self.dispatcher.context.keyspace);
        let has_id = request.name.is_some();
        let early_shadows = (!has_id).then(|| self.send_shadows(&parts, false));
        let enforced = match &parts.enforced[..] {
            _ if request.operation == Operation::Peek => self.peek(&parts.enforced).await?,
            [part] => vec![into_decisions(
                self.send_named(part, Role::Whole, RecordScope::Request, 0).await,
            )?],
            several if has_id => self.attempt(several, is_wanted).await?,
            several => self.peek_then_charge(several, is_wanted).await?,
        };
        let is_admitted = enforced.iter().all(|decisions| is_allowed(decisions));
        let shadows = early_shadows.unwrap_or_else(|| self.send_shadows(&parts, is_admitted));
        let mut decided = enforced;
        for shadow in shadows {
            decided.push(into_decisions(shadow.await)?);
        }
        Ok(parts.into_answer(decided))
    }

    fn send_part(&self, part: &Part, operation: Operation) -> oneshot::Receiver<Outcome> {
        self.send(StoreRequest::new(operation, part.checks.clone()), part.partition)
    }

    fn send(&self, request: StoreRequest, partition: u16) -> oneshot::Receiver<Outcome> {
        self.dispatcher.send(request, partition, self.deadline)
    }

    /// Sends a part under the request id of the whole request, if it has one.
    fn send_named(
        &self,
        part: &Part,
        role: Role,
        scope: RecordScope,
        attempt: u64,
    ) -> oneshot::Receiver<Outcome> {
        self.send(self.named(part, role, scope, attempt), part.partition)
    }

    fn named(&self, part: &Part, role: Role, scope: RecordScope, attempt: u64) -> StoreRequest {
        let name = self.request.name.as_ref();
        let name = name.map(|name| RequestName { role, scope, attempt, ..name.clone() });
        StoreRequest { name, ..StoreRequest::new(self.request.operation, part.checks.clone()) }
    }

    /// Sends the shadow checks. They are recorded only if the request is admitted, as in a single
    /// call.
    fn send_shadows(&self, parts: &Parts, is_recorded: bool) -> Vec<oneshot::Receiver<Outcome>> {
        let send = |part| {
            if is_recorded {
                self.send_named(part, Role::Whole, RecordScope::Shadows, 0)
            } else {
                self.send_part(part, self.request.operation)
            }
        };
        parts.shadows.iter().map(send).collect()
    }

    async fn send_all(
        &self,
        parts: &[Part],
        operation: Operation,
    ) -> Vec<Result<Vec<Decision>, StoreError>> {
        let sent: Vec<_> = parts.iter().map(|part| self.send_part(part, operation)).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for receiver in sent {
            answers.push(into_decisions(receiver.await));
        }
        answers
    }

    /// Peeks at every partition.
    async fn peek(&self, parts: &[Part]) -> Result<Vec<Vec<Decision>>, StoreError> {
        let answers = self.send_all(parts, Operation::Peek).await.into_iter();
        let mut peeked = answers.collect::<Result<Vec<_>, _>>().map_err(not_charged)?;
        if !peeked.iter().all(|decisions| is_allowed(decisions)) {
            // A denied request has no delay.
            peeked.iter_mut().flatten().for_each(|decision| decision.delay = Micros::ZERO);
        }
        Ok(peeked)
    }

    async fn peek_then_charge(
        &self,
        parts: &[Part],
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<Vec<Decision>>, StoreError> {
        let request = self.request;
        let peeked = self.peek(parts).await?;
        let is_admitted = peeked.iter().all(|decisions| is_allowed(decisions));
        let lease = lease_of(request.operation);
        if !is_admitted && !self.is_repeated_lease(parts, &peeked, lease).await? {
            return Ok(self.count_denied(parts, request.operation, peeked).await);
        }
        if !is_wanted() {
            let message = "the deadline passed before the charge";
            return Err(StoreError::unavailable(FailureKind::Overloaded, message));
        }
        let charged = self.send_all(parts, request.operation).await;
        if all_allowed(&charged) {
            return charged.into_iter().collect();
        }
        for (part, charged) in parts.iter().zip(&charged) {
            if let Ok(decisions) = charged {
                self.compensate(part, decisions);
            }
        }
        let charged = charged.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(without_charged(charged, peeked))
    }

    /// Returns whether every check that denies does so only because its key holds the request's lease
    /// already.
    async fn is_repeated_lease(
        &self,
        parts: &[Part],
        peeked: &[Vec<Decision>],
        lease: Option<Id>,
    ) -> Result<bool, StoreError> {
        let Some(lease) = lease else { return Ok(false) };
        let mut inspections = Vec::new();
        for (part, decisions) in parts.iter().zip(peeked) {
            for (check, decision) in part.checks.iter().zip(decisions) {
                if !decision.allowed {
                    let request = StoreRequest::inspect(check.clone());
                    inspections.push(self.send(request, part.partition));
                }
            }
        }
        for inspection in inspections {
            let inspection = request::into_inspection(inspection.await).map_err(not_charged)?;
            let mut leases = inspection.limits.iter().flat_map(|limit| &limit.leases);
            if !leases.any(|held| held.id == lease) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts the denial in the partitions that deny by themselves.
    async fn count_denied(
        &self,
        parts: &[Part],
        operation: Operation,
        mut peeked: Vec<Vec<Decision>>,
    ) -> Vec<Vec<Decision>> {
        let is_other_denial =
            |decision: &Decision| decision.never || decision.reason != Reason::Limit;
        if peeked.iter().flatten().any(is_other_denial) {
            return peeked;
        }
        for (part, decisions) in parts.iter().zip(&mut peeked) {
            let mut limits = part.checks.iter().flat_map(|check| check.policy.limits());
            if is_allowed(decisions) || !limits.any(|limit| limit.counts_denied()) {
                continue;
            }
            // If counting fails, the request is denied all the same.
            let Ok(counted) = into_decisions(self.send_part(part, operation).await) else {
                continue;
            };
            if is_allowed(&counted) {
                self.compensate(part, &counted);
            } else {
                *decisions = counted;
            }
        }
        peeked
    }

    /// Refunds what a partition was charged. If that fails, the charge remains until it recovers.
    fn compensate(&self, part: &Part, decisions: &[Decision]) {
        for undo in compensation(self.request.operation, &part.checks, decisions) {
            self.dispatcher.send_compensation(undo);
        }
    }
}

fn is_allowed(decisions: &[Decision]) -> bool {
    decisions.iter().all(|decision| decision.allowed)
}

fn all_allowed(answers: &[Result<Vec<Decision>, StoreError>]) -> bool {
    answers.iter().all(|answer| answer.as_ref().is_ok_and(|decisions| is_allowed(decisions)))
}

fn into_decisions(delivery: Delivery) -> Result<Vec<Decision>, StoreError> {
    request::into_answer(delivery).map(|answer| answer.decisions)
}

/// Replaces the decisions of the parts that admit, which were not charged in the end, by those of a
/// peek.
fn without_charged(charged: Vec<Vec<Decision>>, peeked: Vec<Vec<Decision>>) -> Vec<Vec<Decision>> {
    let decisions = charged.into_iter().zip(peeked).map(|(charged, mut peeked)| {
        if !is_allowed(&charged) {
            return charged;
        }
        peeked.iter_mut().for_each(|decision| decision.delay = Micros::ZERO);
        peeked
    });
    decisions.collect()
}

/// Peeks and inspections charge nothing, so the outcome of a lost one is known.
fn not_charged(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(failure) if failure.kind == FailureKind::ConnectionLost => {
            StoreError::unavailable(FailureKind::Unreachable, failure.message)
        }
        error => error,
    }
}
