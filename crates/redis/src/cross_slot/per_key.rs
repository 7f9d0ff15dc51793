//! Requests with several keys in a slot that is being migrated.
//!
//! A server rejects a call unless it has all its keys, for as long as the migration takes: their state
//! may be on one node and the record of the request's id on another, and an importing node rejects even
//! keys that do not exist. So each key gets a call of its own.
//!
//! - The record of a request id is looked up alone. A repeat gets its answer. Any other request is
//!   decided without its id: it is not recorded.
//! - A request with several keys is decided like one with several partitions.
//! - A part of an attempt is rejected, unless it is a repeat, and the attempt continues without the id.
//!   The record of a part that is to be taken back is deleted alone, then its keys are refunded: if the
//!   process dies in between, its charge remains until it recovers.

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tollgate_algorithms::{Cost, Id, Operation, Timestamp};
use tollgate_state::{Answer, FailureKind, StoreError};

use super::{CrossSlotRequest, Dispatcher, Phase};
use crate::request::{self, BatchKey, Outcome, PendingRequest, Response, StoreRequest};
use crate::request_id::{RequestId, Role};

impl Dispatcher {
    /// Decides requests whose keys cannot be in one call, until the store is closed.
    pub(crate) async fn decide_per_key_requests(
        self,
        mut requests: UnboundedReceiver<PendingRequest>,
    ) {
        while let Some(pending) = requests.recv().await {
            tokio::spawn(self.clone().decide_per_key(pending));
        }
    }

    async fn decide_per_key(self, pending: PendingRequest) {
        let PendingRequest { request, batch_key, responder } = pending;
        let per_key = PerKeyRequest {
            dispatcher: &self,
            request: &request,
            partition: batch_key.partition,
            deadline: responder.deadline,
        };
        let outcome = per_key.decide(|| !responder.is_closed()).await;
        if let Err(Ok(Response::Decisions(late))) = responder.respond(outcome) {
            self.reconcile(&without_id(&request), &late);
        }
    }
}

/// A request whose keys are in a slot that is being migrated.
struct PerKeyRequest<'a> {
    dispatcher: &'a Dispatcher,
    request: &'a StoreRequest,
    partition: u16,
    deadline: Instant,
}

impl PerKeyRequest<'_> {
    async fn decide(&self, is_wanted: impl Fn() -> bool) -> Outcome {
        let Some(id) = &self.request.request_id else { return self.execute(is_wanted).await };
        if self.request.operation == Operation::Settle {
            return Err(try_again());
        }
        match id.role {
            Role::Whole | Role::Recall => match self.look_up(id).await? {
                Some(repeat) => Ok(repeat),
                None => self.execute(is_wanted).await,
            },
            Role::Claim | Role::Commit => self.look_up(id).await?.ok_or_else(try_again),
            Role::Undo { lease } => self.undo(id, lease).await,
            Role::Part | Role::LookUp | Role::Forget => Err(try_again()),
        }
    }

    async fn send(&self, request: StoreRequest) -> Outcome {
        let key = BatchKey::alone(self.partition);
        request::response(self.dispatcher.send(request, key, self.deadline, Phase::Only).await)
    }

    /// Executes the request without its id.
    async fn execute(&self, is_wanted: impl Fn() -> bool) -> Outcome {
        let request = without_id(self.request);
        let [first, others @ ..] = &request.checks[..] else { return Err(try_again()) };
        if others.iter().all(|other| other.has_key_of(first)) {
            return self.send(request).await;
        }
        let per_key = CrossSlotRequest {
            dispatcher: self.dispatcher,
            request: &request,
            deadline: self.deadline,
            by_key: true,
        };
        per_key.decide(is_wanted).await.map(Response::Decisions)
    }

    /// Sends a request that needs the record of the id only.
    async fn send_record_only(&self, id: &RequestId, role: Role) -> Outcome {
        let request_id = Some(RequestId { role, ..id.clone() });
        self.send(StoreRequest { request_id, ..self.request.clone() }).await
    }

    /// Returns the first answer, if the request is a repeat.
    async fn look_up(&self, id: &RequestId) -> Result<Option<Response>, StoreError> {
        match self.send_record_only(id, Role::LookUp).await? {
            Response::Record(_) => Ok(None),
            repeat => Ok(Some(repeat)),
        }
    }

    /// Takes back a part, if it has a record of this attempt.
    async fn undo(&self, id: &RequestId, lease: Option<Id>) -> Outcome {
        if let Response::Record(Some(time)) = self.send_record_only(id, Role::Forget).await? {
            for undo in self.refunds(time, lease) {
                if let Err(error) = self.send(undo.clone()).await
                    && !error.is_outcome_unknown()
                {
                    self.dispatcher.compensate(vec![undo]);
                }
            }
        }
        Ok(Response::Decisions(Answer { decisions: Vec::new() }))
    }

    /// Returns the requests that take back what was charged at a time, and the lease.
    fn refunds(&self, time: Timestamp, lease: Option<Id>) -> Vec<StoreRequest> {
        let mut refunds = Vec::new();
        for check in self.request.checks.iter().filter(|check| check.cost > Cost::ZERO) {
            let mut add = |operation| {
                refunds.push(StoreRequest::new(operation, vec![check.clone()]));
            };
            if check.policy.has_quota() {
                add(Operation::Refund { time: Some(time) });
            }
            if let Some(lease) = lease.filter(|_| check.policy.has_concurrent()) {
                add(Operation::Release { lease });
            }
        }
        refunds
    }
}

fn without_id(request: &StoreRequest) -> StoreRequest {
    StoreRequest { operation: request.executed_operation(), request_id: None, ..request.clone() }
}

fn try_again() -> StoreError {
    let message = "a slot is being migrated, and its keys are on two nodes";
    StoreError::unavailable(FailureKind::TryAgain, message)
}

/// Returns whether a request was not executed because its keys were on two nodes.
pub(super) fn is_try_again(error: &StoreError) -> bool {
    error.failure() == Some(FailureKind::TryAgain)
}
