//! Requests one after the other, each by the store itself: for verbs, requests of several keys, and
//! stores outside this process.

use tollgate::{Answer, Limiter, ManualClock, Operation, Policy, StoreError, Timestamp};

use super::Alternative;
use super::partition::Partition;
use crate::ask::Asked;
use crate::run::ReplayError;

/// A store for an alternative, whose clock is moved along with the log.
#[derive(Clone, Debug)]
pub struct Store {
    /// What decides.
    pub limiter: Limiter,
    /// Its clock.
    pub clock: ManualClock,
}

/// What was asked, and what was answered.
#[derive(Debug)]
pub struct Answered<'a> {
    /// The number of the line, from 0 on.
    pub number: u64,
    /// All lines before this number are decided, or will never be.
    pub settled: u64,
    /// Which alternative.
    pub alternative: usize,
    /// When.
    pub at: Timestamp,
    /// What was asked.
    pub asked: &'a Asked,
    /// The policies of its checks.
    pub policies: &'a [Option<Policy>],
    /// What was answered, or why it could not be.
    pub answer: Result<&'a Answer, String>,
}

/// Decides a request under each alternative, counts it, and tells what came of each.
///
/// # Errors
/// A store gave no answer, or `tell` failed.
pub(crate) async fn decide(
    stores: &[Store],
    alternatives: &[Alternative],
    partition: &mut Partition,
    event: Requested<'_>,
    tell: &mut dyn FnMut(&Answered<'_>) -> std::io::Result<()>,
) -> Result<(), ReplayError> {
    let Requested { number, settled, at, asked, keys } = event;
    let micros = at.as_micros();
    let spends = asked.spends().filter(|cost| *cost > 0);
    if let Some(cost) = spends {
        partition.offer_request(micros, cost);
        for (key, check) in keys.iter().zip(&asked.checks) {
            partition.offer_key(micros, *key, check.cost.get());
        }
    }
    for (place, (store, alternative)) in stores.iter().zip(alternatives).enumerate() {
        let policies = asked.policies(alternative);
        let checks = asked.checks(&policies);
        let mut request = asked.request(&checks);
        if let Operation::Check { lease } = &mut request.operation
            && !checks.iter().any(|check| check.policy.has_concurrent())
        {
            *lease = None;
        }
        store.clock.set(at);
        let answer = store.limiter.decide(&request).await;
        if let (Some(cost), Ok(answer)) = (spends, &answer) {
            let allowed = answer.decisions.iter().all(|decision| decision.allowed);
            let granted =
                answer.decisions.iter().map(|decision| decision.granted).max().unwrap_or_default();
            partition.count_request(micros, place, cost, allowed.then_some(granted));
            for ((key, check), decision) in keys.iter().zip(&asked.checks).zip(&answer.decisions) {
                let granted = decision.allowed.then_some(decision.granted);
                partition.count_key(micros, place, *key, check.cost.get(), granted);
            }
        }
        match &answer {
            Err(error @ StoreError::Unavailable(_)) => {
                return Err(ReplayError::Store(error.to_string()));
            }
            Ok(answer) if answer.decisions.iter().any(|decision| decision.degraded) => {
                let why =
                    store.limiter.stats().last_failure.map(|last_failure| last_failure.to_string());
                return Err(ReplayError::Store(why.unwrap_or_default()));
            }
            _ => {}
        }
        let answer = answer.as_ref().map_err(ToString::to_string);
        let decided = Answered {
            number,
            settled,
            alternative: place,
            at,
            asked,
            policies: &policies,
            answer,
        };
        tell(&decided).map_err(ReplayError::Told)?;
    }
    Ok(())
}

/// A request at its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested<'a> {
    /// The number of its line.
    pub(crate) number: u64,
    /// All lines before this number are decided, or will never be.
    pub(crate) settled: u64,
    pub(crate) at: Timestamp,
    pub(crate) asked: &'a Asked,
    /// The numbers of its checks' keys.
    pub(crate) keys: &'a [u32],
}
