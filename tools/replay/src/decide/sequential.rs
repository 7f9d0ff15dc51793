//! Sequential replay, where a store decides each request: for operations other than `check`,
//! requests with several keys, and stores outside this process.

use tollgate::{Answer, Limiter, ManualClock, Operation, Policy, Request, StoreError, Timestamp};

use super::partition::Partition;
use crate::error::ReplayError;
use crate::request::{Candidate, LogRequest};

/// The store of a candidate; its clock follows the log.
#[derive(Clone, Debug)]
pub struct CandidateStore {
    /// The limiter.
    pub limiter: Limiter,
    /// Its clock.
    pub clock: ManualClock,
}

/// A decision on a request of the log.
#[derive(Debug)]
pub struct DecisionRecord<'a> {
    /// The number of the line, from 0.
    pub number: u64,
    /// All lines before this number are decided or skipped.
    pub complete_before: u64,
    /// The index of the candidate.
    pub candidate: usize,
    /// The time of the line.
    pub at: Timestamp,
    /// The request.
    pub request: &'a LogRequest,
    /// The policies of its checks.
    pub policies: &'a [Policy],
    /// The answer of the store, or its error.
    pub answer: Result<&'a Answer, String>,
}

/// Decides a request under each candidate, counts the decision, and passes it to `output`.
pub(crate) async fn decide(
    stores: &[CandidateStore],
    candidates: &[Candidate],
    partition: &mut Partition,
    event: TimedRequest<'_>,
    output: &mut dyn FnMut(&DecisionRecord<'_>) -> std::io::Result<()>,
) -> Result<(), ReplayError> {
    let TimedRequest { number, complete_before, at, request, keys } = event;
    let micros = at.as_micros();
    let spends = request.spends().filter(|cost| *cost > 0);
    if let Some(cost) = spends {
        partition.offer_request(micros, cost);
        for (key, check) in keys.iter().zip(&request.checks) {
            partition.offer_key(micros, *key, check.cost.get());
        }
    }
    for (place, (store, candidate)) in stores.iter().zip(candidates).enumerate() {
        let policies = request.policies(candidate);
        let checks = request.checks(&policies);
        let mut operation = request.operation;
        if let Operation::Check { lease } = &mut operation
            && !checks.iter().any(|check| check.policy.has_concurrent())
        {
            *lease = None;
        }
        store.clock.set(at);
        let request_id = request.request_id.as_deref();
        let answer =
            store.limiter.decide(&Request { operation, checks: &checks, request_id }).await;
        if let (Some(cost), Ok(answer)) = (spends, &answer) {
            let allowed = answer.decisions.iter().all(|decision| decision.allowed);
            let granted =
                answer.decisions.iter().map(|decision| decision.granted).max().unwrap_or(0);
            partition.count_request(micros, place, cost, allowed.then_some(granted));
            for ((key, check), decision) in keys.iter().zip(&request.checks).zip(&answer.decisions)
            {
                let granted = decision.allowed.then_some(decision.granted);
                partition.count_key(micros, place, *key, check.cost.get(), granted);
            }
        }
        match &answer {
            Err(error @ StoreError::Unavailable(_)) => {
                return Err(ReplayError::Store(error.to_string()));
            }
            Ok(answer) if answer.decisions.iter().any(|decision| decision.degraded) => {
                let why = store.limiter.stats().last_failure.map(|failure| failure.to_string());
                return Err(ReplayError::Store(
                    why.unwrap_or_else(|| "the store is unavailable".to_owned()),
                ));
            }
            _ => {}
        }
        let record = DecisionRecord {
            number,
            complete_before,
            candidate: place,
            at,
            request,
            policies: &policies[..],
            answer: answer.as_ref().map_err(ToString::to_string),
        };
        output(&record).map_err(ReplayError::Output)?;
    }
    Ok(())
}

pub(crate) struct TimedRequest<'a> {
    /// The number of its line.
    pub(crate) number: u64,
    /// All lines before this number are decided or skipped.
    pub(crate) complete_before: u64,
    pub(crate) at: Timestamp,
    pub(crate) request: &'a LogRequest,
    /// The numbers of the keys of its checks.
    pub(crate) keys: &'a [u32],
}
