//! Requests in flight. They own their data, because the caller's future may be dropped before a
//! request is sent.

use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_algorithms::{
    Cost, Decision, Inspection, Kind, Limit, Operation, Policy, Request, Timestamp,
};
use tollgate_state::{Answer, FailureKind, StoreError};

use crate::encoding::{MAX_NUMBER, put_number};
use crate::error;
use crate::request_id::{RecordScope, RequestId, Role};

/// A request whose keys are all in one partition.
#[derive(Clone, Debug)]
pub(crate) struct StoreRequest {
    pub(crate) operation: Operation,
    pub(crate) checks: Vec<RequestCheck>,
    /// The id, and what the request does with it.
    pub(crate) request_id: Option<RequestId>,
    /// Whether to return the state of the key, and decide nothing.
    pub(crate) inspects: bool,
}

/// One check of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestCheck {
    pub(crate) policy: Policy,
    pub(crate) key: Box<[u8]>,
    pub(crate) cost: Cost,
}

impl RequestCheck {
    /// Returns whether another check has the same policy and key.
    pub(crate) fn has_key_of(&self, other: &RequestCheck) -> bool {
        self.key == other.key && self.policy.name() == other.policy.name()
    }
}

impl StoreRequest {
    /// A request without a request id.
    pub(crate) fn new(operation: Operation, checks: Vec<RequestCheck>) -> Self {
        StoreRequest { operation, checks, request_id: None, inspects: false }
    }

    /// A request for the state of a key.
    pub(crate) fn inspect(check: RequestCheck) -> Self {
        StoreRequest { inspects: true, ..StoreRequest::new(Operation::Peek, vec![check]) }
    }

    /// Returns the operation that the server executes, unless the request is a repeat.
    pub(crate) fn executed_operation(&self) -> Operation {
        match self.request_id.as_ref().map(|id| id.role) {
            // To look up a charge is part of its settlement.
            _ if self.operation == Operation::Settle => self.operation,
            Some(Role::Claim | Role::Recall | Role::LookUp) => Operation::Peek,
            _ => self.operation,
        }
    }

    /// Returns whether the request reads or deletes the record of its id only, and none of its keys.
    pub(crate) fn is_record_only(&self) -> bool {
        let role = self.request_id.as_ref().map(|id| id.role);
        self.operation != Operation::Settle && matches!(role, Some(Role::LookUp | Role::Forget))
    }

    /// Returns whether the request changes a key.
    pub(crate) fn may_charge(&self) -> bool {
        !self.inspects && self.executed_operation() != Operation::Peek
    }

    /// Returns an estimate of the script's execution time on a slow machine, by the figures of DESIGN.md
    /// for batches.
    pub(crate) fn cost(&self) -> Duration {
        const CHECK: Duration = Duration::from_micros(5);
        const LIMIT: Duration = Duration::from_micros(3);
        const LOG: Duration = Duration::from_micros(60);
        const FEW_LEASES: Duration = Duration::from_micros(50);
        const MANY_LEASES: Duration = Duration::from_micros(100);
        /// The maximum number of leases in the bytes of a key, as in lua/arguments.lua.
        const MAX_FEW_LEASES: u64 = 64;
        let of_limit = |limit: &Limit| match limit.spec().kind {
            Kind::Log | Kind::SlidingBy { .. } => LOG,
            Kind::Concurrent if limit.capacity() > MAX_FEW_LEASES => MANY_LEASES,
            Kind::Concurrent => FEW_LEASES,
            _ => LIMIT,
        };
        let of_check = |check: &RequestCheck| {
            CHECK + check.policy.limits().iter().map(of_limit).sum::<Duration>()
        };
        self.checks.iter().map(of_check).sum()
    }
}

impl From<&Request<'_>> for StoreRequest {
    fn from(request: &Request<'_>) -> Self {
        let checks = request.checks.iter().map(|check| RequestCheck {
            policy: check.policy.clone(),
            key: check.key.into(),
            cost: check.cost,
        });
        let mut whole = StoreRequest::new(request.operation, checks.collect());
        // Peeks are not recorded for idempotency.
        let id = request.request_id.filter(|_| request.operation != Operation::Peek);
        whole.request_id = id.map(|id| RequestId {
            id: id.into(),
            fingerprint: fingerprint(&whole),
            role: Role::Whole,
            scope: RecordScope::Request,
            attempt: 0,
            target: target(&whole),
            charge: (whole.operation == Operation::Settle).then_some(0),
        });
        whole
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Decisions(Answer),
    Inspection(Box<Inspection>),
    /// The decisions of a claim, and the number of the attempt.
    Claimed(Answer, u64),
    /// Another attempt of the same request has taken over.
    Superseded,
    /// When the part was charged whose record was deleted; `None` if there was no record.
    Record(Option<Timestamp>),
    /// The fingerprint of a check whose charge can be settled.
    Charge(u128),
}

pub(crate) type Outcome = Result<Response, StoreError>;

/// An outcome, or an error if the store was dropped.
pub(crate) type Delivery = Result<Outcome, oneshot::error::RecvError>;

pub(crate) fn response(delivery: Delivery) -> Outcome {
    delivery.unwrap_or_else(|_| {
        Err(StoreError::unavailable(FailureKind::ConnectionLost, "the store was closed"))
    })
}

/// Returns the received decisions.
pub(crate) fn into_answer(delivery: Delivery) -> Result<Answer, StoreError> {
    match response(delivery)? {
        Response::Decisions(answer) | Response::Claimed(answer, _) => Ok(answer),
        Response::Superseded => Err(StoreError::unavailable(FailureKind::Superseded, "")),
        Response::Inspection(_) | Response::Record(_) | Response::Charge(_) => {
            Err(error::protocol("other data for decisions"))
        }
    }
}

/// Returns the received inspection.
pub(crate) fn into_inspection(delivery: Delivery) -> Result<Inspection, StoreError> {
    match response(delivery)? {
        Response::Inspection(inspection) => Ok(*inspection),
        _ => Err(error::protocol("decisions for an inspection")),
    }
}

/// Returns the decisions in the order of their checks; each has the index of its check.
pub(crate) fn in_order(
    checks: usize,
    decisions: impl IntoIterator<Item = (usize, Decision)>,
) -> Answer {
    let decisions = decisions.into_iter();
    if checks == 1 {
        return Answer { decisions: decisions.map(|(_, decision)| decision).collect() };
    }
    let mut ordered = vec![None; checks];
    for (index, decision) in decisions {
        ordered[index] = Some(decision);
    }
    #[expect(
        clippy::expect_used,
        reason = "a default would be a decision that the store did not make"
    )]
    let decision = |decision: Option<Decision>| decision.expect("one decision per check");
    Answer { decisions: ordered.into_iter().map(decision).collect() }
}

/// A request that waits to be sent.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) request: StoreRequest,
    pub(crate) batch_key: BatchKey,
    pub(crate) responder: Responder,
}

/// Requests with the same key can share a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BatchKey {
    /// The partition of the keys.
    pub(crate) partition: u16,
    /// Whether to send `ASKING` first, to a node that is importing the slot.
    pub(crate) is_asking: bool,
    /// Whether each request needs a call of its own: while a slot is being migrated, the keys of a
    /// call may be on two nodes.
    pub(crate) is_alone: bool,
}

impl BatchKey {
    pub(crate) const fn new(partition: u16) -> Self {
        BatchKey { partition, is_asking: false, is_alone: false }
    }

    pub(crate) const fn alone(partition: u16) -> Self {
        BatchKey { is_alone: true, ..BatchKey::new(partition) }
    }
}

/// Sends the outcome of a request to its caller.
#[derive(Debug)]
pub(crate) struct Responder {
    /// `None` for a compensation, which no caller waits for.
    sender: Option<oneshot::Sender<Outcome>>,
    /// When the request was made.
    pub(crate) since: Instant,
    /// When the caller stops waiting.
    pub(crate) deadline: Instant,
    /// How often the request was redirected.
    pub(crate) redirections: u8,
    /// Whether earlier parts of the same request were executed: it goes before requests that begin.
    pub(crate) is_continuation: bool,
}

/// How long a compensation may take.
const COMPENSATION_TIMEOUT: Duration = Duration::from_secs(10);

impl PendingRequest {
    pub(crate) fn new(
        request: StoreRequest,
        batch_key: BatchKey,
        since: Instant,
        deadline: Instant,
    ) -> (PendingRequest, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        let sender = Some(sender);
        let responder =
            Responder { sender, since, deadline, redirections: 0, is_continuation: false };
        (PendingRequest { request, batch_key, responder }, receiver)
    }

    /// A request that takes back a charge.
    pub(crate) fn compensation(request: StoreRequest, partition: u16) -> PendingRequest {
        let since = Instant::now();
        let deadline = since + COMPENSATION_TIMEOUT;
        let responder =
            Responder { sender: None, since, deadline, redirections: 0, is_continuation: true };
        PendingRequest { request, batch_key: BatchKey::new(partition), responder }
    }
}

impl Responder {
    /// Returns whether the caller has dropped its future.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.as_ref().is_some_and(oneshot::Sender::is_closed)
    }

    /// Returns whether the request is a compensation.
    pub(crate) const fn is_compensation(&self) -> bool {
        self.sender.is_none()
    }

    /// Returns whether the deadline of a caller has passed.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        !self.is_compensation() && self.deadline < now
    }

    /// Returns how long the request may take from when it was made.
    pub(crate) fn budget(&self) -> Duration {
        self.deadline.saturating_duration_since(self.since)
    }

    /// Sends the outcome; returns it if the caller no longer waits.
    pub(crate) fn respond(self, outcome: Outcome) -> Result<(), Outcome> {
        self.sender.map_or(Ok(()), |sender| sender.send(outcome))
    }
}

/// Returns a fingerprint of a request: equal for the same operation, policies, keys and costs. A
/// repeat without an id of a lease or a reservation gets a new random one, so these ids are excluded.
fn fingerprint(request: &StoreRequest) -> u128 {
    let mut text = request.operation.as_str().as_bytes().to_vec();
    match request.operation {
        Operation::Reserve { max_wait, .. } => put_number(&mut text, max_wait.get()),
        Operation::Refund { time } => {
            put_number(&mut text, time.map_or(0, |time| time.as_micros() + 1))
        }
        Operation::Backfill { limit, time } => {
            put_number(&mut text, time.as_micros());
            text.push(limit);
        }
        Operation::Block { span } => {
            put_number(&mut text, span.map_or(0, |span| span.get().min(MAX_NUMBER) + 1))
        }
        Operation::Cancel { id }
        | Operation::Renew { lease: id }
        | Operation::Release { lease: id } => text.extend(id.as_u128().to_be_bytes()),
        _ => {}
    }
    for check in &request.checks {
        put_key(&mut text, check);
        put_number(&mut text, check.cost.get());
    }
    hash(&text)
}

/// Returns a fingerprint of the checks without their costs, if the request is a check or its settlement;
/// otherwise 0. It proves which keys were charged, so it is part of a SHA-256, for which no other keys can be
/// found. It is stored, so it must never change.
fn target(request: &StoreRequest) -> u128 {
    if !matches!(request.operation, Operation::Check { .. } | Operation::Settle) {
        return 0;
    }
    let mut text = Vec::new();
    request.checks.iter().for_each(|check| put_key(&mut text, check));
    let digest: [u8; 32] = Sha256::digest(&text).into();
    digest[..16].iter().fold(0, |bits, byte| bits << 8 | u128::from(*byte))
}

/// Appends the policy and the key of a check.
fn put_key(text: &mut Vec<u8>, check: &RequestCheck) {
    for part in [check.policy.name().as_bytes(), &check.key] {
        #[expect(clippy::expect_used, reason = "names and keys are bounded")]
        let length = u32::try_from(part.len()).expect("a length fits u32");
        text.extend(length.to_le_bytes());
        text.extend(part);
    }
}

fn hash(text: &[u8]) -> u128 {
    // FNV-1a with 128 bits. The fingerprint is stored, so it must never change.
    text.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}
