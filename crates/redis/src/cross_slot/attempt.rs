//! Requests with an id and keys in several partitions.
//!
//! Each part is recorded under the id, so a part whose reply was lost can be sent again. An attempt
//! claims the id in the partition of the first check, then charges the other parts, and then the first,
//! which decides: its record represents the whole request. An attempt can only decide if no other has
//! claimed the id since. It takes over the parts that earlier attempts charged, and after a denial it
//! takes back the parts that no later attempt has taken over. Therefore a request that is admitted
//! under an id is charged in every partition, whichever replies are lost.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use tollgate_algorithms::{Decision, Operation};
use tollgate_state::{FailureKind, StoreError};

use super::parts::Part;
use super::per_key::is_try_again;
use super::{
    CrossSlotRequest, Decisions, Dispatcher, Phase, all_allow, deadline_passed, into_decisions,
    is_allowed, lease_of, not_charged, receive_all, without_charged,
};
use crate::request::{self, BatchKey, Response, StoreRequest};
use crate::request_id::{RecordScope, Role};

/// The delays between repetitions of a part whose outcome is unknown.
const MIN_DELAY: Duration = Duration::from_millis(5);
const MAX_DELAY: Duration = Duration::from_millis(500);

/// The result of a claim.
enum Claim {
    /// The decisions of the first part, if it was charged now, and the number of the attempt.
    Attempt(Vec<Decision>, u64),
    /// The first decisions of the first part, because the request is a repeat.
    Repeat(Vec<Decision>),
}

impl CrossSlotRequest<'_> {
    /// Decides the request, or returns the first answer if it is a repeat.
    pub(super) async fn attempt(
        &self,
        parts: &[Part],
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<Vec<Decision>>, StoreError> {
        let [home, others @ ..] = parts else { return Ok(Vec::new()) };
        let claim = self.send_with_id(home, Role::Claim, RecordScope::Request, 0, Phase::First);
        let peek = |part| self.send_part(part, Operation::Peek, Phase::First);
        let peeks: Vec<_> = others.iter().map(peek).collect();
        let (claimed, attempt) = match into_claim(request::response(claim.await))? {
            Claim::Attempt(decisions, attempt) => (decisions, attempt),
            Claim::Repeat(home) => return self.recall(home, others).await,
        };
        let mut peeked = vec![claimed];
        for decisions in receive_all(peeks).await {
            peeked.push(decisions.map_err(not_charged)?);
        }
        let lease = lease_of(self.request.operation);
        if !all_allow(&peeked) && !self.is_repeated_lease(parts, &peeked, lease).await? {
            return Ok(self.count_denied(parts, self.request.operation, peeked).await);
        }
        if !is_wanted() {
            return Err(deadline_passed());
        }
        let charge =
            |part| self.send_with_id(part, Role::Part, RecordScope::Part, attempt, Phase::Later);
        let charged = receive_all(others.iter().map(charge).collect()).await;
        let decided = self.decide_charged(home, &charged, attempt, is_wanted).await;
        let is_charged = match &decided {
            Ok(decided) => all_allow(decided),
            // The first part may have been charged.
            Err(error) => error.is_outcome_unknown(),
        };
        if !is_charged {
            let mut undone = self.undo(others, &charged, attempt);
            if decided.as_ref().is_err_and(is_try_again) {
                // The request is decided without its id, and must not find its own charges.
                undone.join_all().await;
            } else {
                undone.detach_all();
            }
        }
        decided.map(|decided| if is_charged { decided } else { without_charged(decided, peeked) })
    }

    /// Charges the first part, if the others admit.
    async fn decide_charged(
        &self,
        home: &Part,
        charged: &[Decisions],
        attempt: u64,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<Vec<Decision>>, StoreError> {
        // A part whose outcome is unknown is taken back.
        let others: Result<Vec<_>, _> = charged.iter().cloned().collect();
        let mut others = others.map_err(not_charged)?;
        if !is_wanted() {
            return Err(deadline_passed());
        }
        let home = if all_allow(&others) {
            self.commit(home, attempt).await?
        } else {
            into_decisions(self.send_part(home, Operation::Peek, Phase::Later).await)
                .map_err(not_charged)?
        };
        // Whether it is a repeat is what the first part says: others may repeat an earlier attempt.
        let is_repeat = home.iter().any(|decision| decision.replayed);
        others.iter_mut().flatten().for_each(|decision| decision.replayed = is_repeat);
        others.insert(0, home);
        Ok(others)
    }

    /// Charges the first part. If its outcome is unknown, repeats it until the server answers.
    async fn commit(&self, home: &Part, attempt: u64) -> Decisions {
        let commit = self.with_id(home, Role::Commit, RecordScope::Request, attempt);
        match into_decisions(self.send(commit.clone(), home.partition, Phase::Later).await) {
            Err(error) if error.is_outcome_unknown() => {
                self.dispatcher.repeat(&commit, home.partition, 1).await.unwrap_or(Err(error))
            }
            decisions => decisions,
        }
    }

    /// Returns the first answer to a request.
    async fn recall(
        &self,
        home: Vec<Decision>,
        others: &[Part],
    ) -> Result<Vec<Vec<Decision>>, StoreError> {
        let recall =
            |part| self.send_with_id(part, Role::Recall, RecordScope::Part, 0, Phase::Later);
        let mut recalled = vec![home];
        for decisions in receive_all(others.iter().map(recall).collect()).await {
            recalled.push(decisions.map_err(not_charged)?);
        }
        recalled.iter_mut().flatten().for_each(|decision| decision.replayed = true);
        Ok(recalled)
    }

    /// Takes back the parts of an attempt, in the background.
    fn undo(&self, parts: &[Part], charged: &[Decisions], attempt: u64) -> JoinSet<()> {
        let mut undone = JoinSet::new();
        let role = Role::Undo { lease: lease_of(self.request.operation) };
        for (part, charged) in parts.iter().zip(charged) {
            if matches!(charged, Ok(decisions) if !is_allowed(decisions)) {
                continue;
            }
            let undo = StoreRequest {
                operation: Operation::Refund { time: None },
                ..self.with_id(part, role, RecordScope::Part, attempt)
            };
            let unknown = u64::from(charged.as_ref().is_err_and(StoreError::is_outcome_unknown));
            let (dispatcher, partition) = (self.dispatcher.clone(), part.partition);
            undone.spawn(async move {
                // Without an answer before the id expires, the charge remains until it recovers.
                let _ = dispatcher.repeat(&undo, partition, unknown).await;
            });
        }
        undone
    }
}

impl Dispatcher {
    /// Sends a part that can be repeated until the server answers; `None` if it does not before the
    /// id expires. `unknown` is the number of earlier executions of the part whose outcome is
    /// unknown: the answer resolves them.
    async fn repeat(
        &self,
        request: &StoreRequest,
        partition: u16,
        mut unknown: u64,
    ) -> Option<Decisions> {
        let options = &self.context.options;
        let until = Instant::now() + Duration::from_micros(options.request_id_horizon.get());
        let mut delay = MIN_DELAY;
        while Instant::now() < until {
            let deadline = Instant::now() + 2 * options.call_timeout;
            let key = BatchKey::new(partition);
            let sent = self.send(request.clone(), key, deadline, Phase::Later);
            match into_decisions(sent.await) {
                Err(error @ StoreError::Unavailable(_)) if !is_definite(&error) => {
                    unknown += u64::from(error.is_outcome_unknown());
                }
                decisions => {
                    self.context.counters.resolve_unknown(unknown);
                    return Some(decisions);
                }
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
        None
    }
}

fn into_claim(response: Result<Response, StoreError>) -> Result<Claim, StoreError> {
    match response.map_err(not_charged)? {
        Response::Claimed(answer, attempt) => Ok(Claim::Attempt(answer.decisions, attempt)),
        response => into_decisions(Ok(Ok(response))).map(Claim::Repeat),
    }
}

/// Returns whether the error says that the part is not executed, however often it is sent.
fn is_definite(error: &StoreError) -> bool {
    error.failure() == Some(FailureKind::Superseded) || is_try_again(error)
}
