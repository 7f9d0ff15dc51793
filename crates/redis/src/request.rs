//! Requests in flight. They own their data, because the caller's future may be dropped before a
//! request is sent.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tollgate_core::{Cost, Decision, Inspection, Kind, Operation, Policy, Request};
use tollgate_store::{Answer, FailureKind, StoreError};

use crate::error;

/// A request whose keys are all in one partition.
#[derive(Clone, Debug)]
pub(crate) struct StoreRequest {
    pub(crate) operation: Operation,
    pub(crate) checks: Vec<RequestCheck>,
    pub(crate) request_id: Option<Box<[u8]>>,
    /// Whether to return the state of the key, and decide nothing.
    pub(crate) inspects: bool,
    /// Set if this is a part of a request with keys in several partitions.
    pub(crate) parent: Option<ParentRequest>,
}

/// The identity of a request with keys in several partitions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentRequest {
    pub(crate) fingerprint: u128,
    /// Whether the part has a record of its own, which does not represent the whole request.
    pub(crate) is_separate: bool,
}

/// One check of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestCheck {
    pub(crate) policy: Policy,
    pub(crate) key: Box<[u8]>,
    pub(crate) cost: Cost,
}

impl StoreRequest {
    /// A request without a request id.
    pub(crate) fn new(operation: Operation, checks: Vec<RequestCheck>) -> Self {
        StoreRequest { operation, checks, request_id: None, inspects: false, parent: None }
    }

    /// A request for the state of a key.
    pub(crate) fn inspect(check: RequestCheck) -> Self {
        StoreRequest { inspects: true, ..StoreRequest::new(Operation::Peek, vec![check]) }
    }

    /// Returns an estimate of the script's execution time, from measurements on an AMD EPYC server.
    pub(crate) fn cost(&self) -> Duration {
        const LIMIT: Duration = Duration::from_micros(3);
        const LOG: Duration = Duration::from_micros(40);
        const CONCURRENT: Duration = Duration::from_micros(30);
        let limits = self.checks.iter().flat_map(|check| check.policy.limits());
        let limits = limits.map(|limit| match limit.spec().kind {
            Kind::Log | Kind::SlidingBy { .. } => LOG,
            Kind::Concurrent => CONCURRENT,
            _ => LIMIT,
        });
        limits.sum()
    }
}

impl From<&Request<'_>> for StoreRequest {
    fn from(request: &Request<'_>) -> Self {
        let checks = request.checks.iter().map(|check| RequestCheck {
            policy: check.policy.clone(),
            key: check.key.into(),
            cost: check.cost,
        });
        // Peeks are not recorded for idempotency.
        let request_id = request.request_id.filter(|_| request.operation != Operation::Peek);
        StoreRequest {
            request_id: request_id.map(Into::into),
            ..StoreRequest::new(request.operation, checks.collect())
        }
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub(crate) enum Response {
    Decisions(Answer),
    Inspection(Inspection),
}

pub(crate) type Outcome = Result<Response, StoreError>;

/// An outcome, or an error if the store was dropped.
pub(crate) type Delivery = Result<Outcome, oneshot::error::RecvError>;

fn response(delivery: Delivery) -> Outcome {
    delivery.unwrap_or_else(|_| {
        Err(StoreError::unavailable(FailureKind::ConnectionLost, "the store was closed"))
    })
}

/// Returns the received decisions.
pub(crate) fn into_answer(delivery: Delivery) -> Result<Answer, StoreError> {
    match response(delivery)? {
        Response::Decisions(answer) => Ok(answer),
        Response::Inspection(_) => Err(error::protocol("an inspection for decisions")),
    }
}

/// Returns the received inspection.
pub(crate) fn into_inspection(delivery: Delivery) -> Result<Inspection, StoreError> {
    match response(delivery)? {
        Response::Inspection(inspection) => Ok(inspection),
        Response::Decisions(_) => Err(error::protocol("decisions for an inspection")),
    }
}

/// Returns the decisions in the order of their checks; each has the index of its check.
pub(crate) fn in_order(
    checks: usize,
    decisions: impl IntoIterator<Item = (usize, Decision)>,
) -> Answer {
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
}

impl PendingRequest {
    pub(crate) fn new(
        request: StoreRequest,
        partition: u16,
        since: Instant,
        deadline: Instant,
    ) -> (PendingRequest, oneshot::Receiver<Outcome>) {
        let (sender, receiver) = oneshot::channel();
        let responder = Responder { sender: Some(sender), since, deadline, redirections: 0 };
        let batch_key = BatchKey::new(partition);
        (PendingRequest { request, batch_key, responder }, receiver)
    }

    /// A request that takes back a charge.
    pub(crate) fn compensation(
        request: StoreRequest,
        partition: u16,
        since: Instant,
        deadline: Instant,
    ) -> PendingRequest {
        let responder = Responder { sender: None, since, deadline, redirections: 0 };
        let batch_key = BatchKey::new(partition);
        PendingRequest { request, batch_key, responder }
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

    /// Sends the outcome; returns it if the caller no longer waits.
    pub(crate) fn respond(self, outcome: Outcome) -> Result<(), Outcome> {
        self.sender.map_or(Ok(()), |sender| sender.send(outcome))
    }
}
