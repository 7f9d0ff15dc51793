//! Requests with keys in several partitions of a cluster, which no single call can decide.
//!
//! First, every partition is peeked at, which charges nothing. Only if all admit, each is charged. If
//! one then denies, because of a concurrent request, the others are compensated: they are refunded
//! exactly what they were charged. So no request is admitted that a single call would deny. A request
//! may be denied while another request with several partitions on one of its keys is in progress. If
//! the process dies in between, charges remain until they recover.
//!
//! Under overload, a call is wasted if its request is not answered in time, and a request over two
//! partitions makes four calls. Therefore a request begins only if each queue is short enough that
//! the first calls can be answered within half of the time that is left, and calls that follow the
//! first go before requests that begin.
//!
//! - A request with an id makes an attempt, which `attempt.rs` describes.
//! - A denial is counted, for a ban or by limits that count denials, in the partitions that deny by
//!   themselves.
//! - Checks of shadow policies do not affect the decision, and are decided separately. If the request
//!   has an id, they are decided after the other checks, and recorded in their own partitions if the
//!   request was admitted, so that a repeat does not charge them again. If all checks are shadows, the
//!   first partition represents the request.

mod attempt;
mod parts;
mod per_key;
mod settle;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_algorithms::{Decision, Id, Micros, Operation, Reason};
use tollgate_state::{Answer, FailureKind, StoreError};

use crate::compensation::{compensation, lease_of, reconcile};
use crate::context::StoreContext;
use crate::request::{
    self, BatchKey, Delivery, Outcome, PendingRequest, RequestCheck, StoreRequest,
};
use crate::request_id::{RecordScope, RequestId, Role};
use crate::topology::Routes;
use parts::{Part, Parts};
use per_key::is_try_again;

/// A request with keys in several partitions.
pub(crate) struct CrossSlotRequest<'a> {
    pub(crate) dispatcher: &'a Dispatcher,
    pub(crate) request: &'a StoreRequest,
    pub(crate) deadline: Instant,
    /// Whether each key is a part, because the slot of its partition is being migrated.
    pub(crate) by_key: bool,
}

/// The place of a call among those of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The only call in its partition.
    Only,
    /// A call that charges nothing, and which a charge follows.
    First,
    /// A call that follows the first.
    Later,
}

/// The decisions of a part.
type Decisions = Result<Vec<Decision>, StoreError>;

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
        batch_key: BatchKey,
        deadline: Instant,
        phase: Phase,
    ) -> oneshot::Receiver<Outcome> {
        let (mut pending, receiver) =
            PendingRequest::new(request, batch_key, Instant::now(), deadline);
        pending.responder.is_continuation = phase == Phase::Later;
        self.routes.submit(pending);
        receiver
    }

    /// Takes back the charge of a request whose caller did not wait for the answer.
    pub(crate) fn reconcile(&self, request: &StoreRequest, answer: &Answer) {
        self.compensate(reconcile(request, answer, &self.context.counters));
    }

    fn compensate(&self, undo: Vec<StoreRequest>) {
        for undo in undo {
            // A compensation has the check whose charge it takes back.
            let partition = self.context.keyspace.partition_of(&undo.checks[0].key);
            self.routes.submit(PendingRequest::compensation(undo, partition));
        }
    }
}

impl CrossSlotRequest<'_> {
    /// Decides the request; `is_wanted` returns whether the caller still waits for the answer.
    pub(crate) async fn decide(&self, is_wanted: impl Fn() -> bool) -> Result<Answer, StoreError> {
        let request = self.request;
        let parts = Parts::new(request, &self.dispatcher.context.keyspace, self.by_key);
        self.check_queues(&parts)?;
        if request.operation == Operation::Settle {
            let settled = self.settle(&parts).await?;
            return Ok(parts.into_answer(settled));
        }
        let has_id = request.request_id.is_some();
        let early_shadows = (!has_id).then(|| self.send_shadows(&parts, false));
        let enforced = match &parts.enforced[..] {
            _ if request.operation == Operation::Peek => self.peek(&parts.enforced).await?,
            [part] => vec![into_decisions(
                self.send_with_id(part, Role::Whole, RecordScope::Request, 0, Phase::Only).await,
            )?],
            several if has_id => match self.attempt(several, &is_wanted).await {
                // Nothing of the attempt is charged.
                Err(error) if is_try_again(&error) => {
                    self.peek_then_charge(several, is_wanted).await?
                }
                decided => decided?,
            },
            several => self.peek_then_charge(several, is_wanted).await?,
        };
        let is_admitted = all_allow(&enforced);
        let shadows = early_shadows.unwrap_or_else(|| self.send_shadows(&parts, is_admitted));
        let mut decided = enforced;
        for shadow in shadows {
            decided.push(into_decisions(shadow.await)?);
        }
        Ok(parts.into_answer(decided))
    }

    /// Returns an error if the queue of a part that decides is too long. All such parts are sent or
    /// none: under overload, the work for the others would be wasted.
    fn check_queues(&self, parts: &Parts) -> Result<(), StoreError> {
        let deadline = if parts.enforced.len() > 1 { self.first_deadline() } else { self.deadline };
        let rest = deadline.saturating_duration_since(Instant::now());
        for part in &parts.enforced {
            if self.dispatcher.routes.expected_wait(part.partition, &part.checks) > rest {
                let message = "a server of its keys is busy with earlier requests";
                let error = StoreError::unavailable(FailureKind::Overloaded, message);
                self.dispatcher.context.counters.record_error(&error, false);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The deadline of calls in the first phase: half of the time is left for the charge.
    fn first_deadline(&self) -> Instant {
        if self.request.operation == Operation::Peek {
            return self.deadline;
        }
        let now = Instant::now();
        now + self.deadline.saturating_duration_since(now) / 2
    }

    fn send_part(
        &self,
        part: &Part,
        operation: Operation,
        phase: Phase,
    ) -> oneshot::Receiver<Outcome> {
        self.send(StoreRequest::new(operation, part.checks.clone()), part.partition, phase)
    }

    fn send(
        &self,
        request: StoreRequest,
        partition: u16,
        phase: Phase,
    ) -> oneshot::Receiver<Outcome> {
        let deadline = match phase {
            Phase::First => self.first_deadline(),
            Phase::Only | Phase::Later => self.deadline,
        };
        let batch_key = BatchKey { is_alone: self.by_key, ..BatchKey::new(partition) };
        self.dispatcher.send(request, batch_key, deadline, phase)
    }

    /// Sends a part under the request id of the whole request, if it has one.
    fn send_with_id(
        &self,
        part: &Part,
        role: Role,
        scope: RecordScope,
        attempt: u64,
        phase: Phase,
    ) -> oneshot::Receiver<Outcome> {
        self.send(self.with_id(part, role, scope, attempt), part.partition, phase)
    }

    fn with_id(&self, part: &Part, role: Role, scope: RecordScope, attempt: u64) -> StoreRequest {
        let request_id = self.request.request_id.as_ref();
        let request_id = request_id.map(|id| RequestId { role, scope, attempt, ..id.clone() });
        StoreRequest {
            request_id,
            ..StoreRequest::new(self.request.operation, part.checks.clone())
        }
    }

    /// Sends the shadow checks. They are recorded only if the request is admitted, as in a single
    /// call.
    fn send_shadows(&self, parts: &Parts, is_recorded: bool) -> Vec<oneshot::Receiver<Outcome>> {
        let send = |part| {
            if is_recorded {
                self.send_with_id(part, Role::Whole, RecordScope::Shadows, 0, Phase::Later)
            } else {
                self.send_part(part, self.request.operation, Phase::Only)
            }
        };
        parts.shadows.iter().map(send).collect()
    }

    async fn send_all(&self, parts: &[Part], operation: Operation, phase: Phase) -> Vec<Decisions> {
        receive_all(parts.iter().map(|part| self.send_part(part, operation, phase)).collect()).await
    }

    /// Peeks at every partition.
    async fn peek(&self, parts: &[Part]) -> Result<Vec<Vec<Decision>>, StoreError> {
        let answers = self.send_all(parts, Operation::Peek, Phase::First).await.into_iter();
        let mut peeked = answers.collect::<Result<Vec<_>, _>>().map_err(not_charged)?;
        if !all_allow(&peeked) {
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
        let is_admitted = all_allow(&peeked);
        let lease = lease_of(request.operation);
        if !is_admitted && !self.is_repeated_lease(parts, &peeked, lease).await? {
            return Ok(self.count_denied(parts, request.operation, peeked).await);
        }
        if !is_wanted() {
            return Err(deadline_passed());
        }
        let charged = self.send_all(parts, request.operation, Phase::Later).await;
        let is_charged = |part: &Decisions| part.as_ref().is_ok_and(|part| is_allowed(part));
        if !charged.iter().all(is_charged) {
            for (part, charged) in parts.iter().zip(&charged) {
                if let Ok(decisions) = charged {
                    self.compensate(part, decisions);
                }
            }
        }
        let charged = charged.into_iter().collect::<Result<Vec<_>, _>>()?;
        Ok(if all_allow(&charged) { charged } else { without_charged(charged, peeked) })
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
                    inspections.push(self.send(request, part.partition, Phase::Later));
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
            let counts = |check: &RequestCheck| check.policy.counts_denials();
            if is_allowed(decisions) || !part.checks.iter().any(counts) {
                continue;
            }
            // If counting fails, the request is denied all the same.
            let Ok(counted) = into_decisions(self.send_part(part, operation, Phase::Later).await)
            else {
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
        let undo = compensation(self.request.operation, &part.checks, decisions);
        self.dispatcher.compensate(undo);
    }
}

fn is_allowed(decisions: &[Decision]) -> bool {
    decisions.iter().all(|decision| decision.allowed)
}

fn all_allow(parts: &[Vec<Decision>]) -> bool {
    parts.iter().all(|decisions| is_allowed(decisions))
}

fn into_decisions(delivery: Delivery) -> Decisions {
    request::into_answer(delivery).map(|answer| answer.decisions)
}

async fn receive_all(sent: Vec<oneshot::Receiver<Outcome>>) -> Vec<Decisions> {
    let mut received = Vec::with_capacity(sent.len());
    for part in sent {
        received.push(into_decisions(part.await));
    }
    received
}

fn deadline_passed() -> StoreError {
    StoreError::unavailable(FailureKind::Overloaded, "the deadline passed before the charge")
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
