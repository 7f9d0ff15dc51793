//! Asking the store, once for all descriptors of a request.

use std::ops::Range;

use tollgate::{Answer, Check, Cost, Decision, Operation, Policy, Reason, Request, StoreError};

use super::asked::{Asked, Hits};
use super::patience::patience_of;
use super::refusal::Refusal;
use crate::config::Charging;
use crate::http::{Exchange, Problem};
use crate::metrics::Surface;

/// What the store is to be asked.
#[derive(Debug, Default)]
struct Batch<'a> {
    checks: Vec<Check<'a>>,
    /// What is asked of which of the checks.
    requests: Vec<(Operation, Range<usize>)>,
}

/// Where the answer to a descriptor is: in which request's, and which of its decisions; nowhere
/// for one that the store is not asked about.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// What was there before, where that is wanted.
    before: Option<usize>,
    at: Option<(usize, usize)>,
    is_penalty: bool,
}

/// What the store said of a descriptor.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly all of them are decided")]
pub(super) enum Said {
    /// It was not asked.
    Nothing,
    /// This.
    Decided {
        decision: Decision,
        /// What could be spent before, where that was asked too.
        before: Option<u64>,
        /// Whether it was charged although it never passes.
        is_penalty: bool,
    },
    /// No answer, and there is none in its place.
    Failed,
}

impl Said {
    /// Whether the store had no part in it.
    pub(super) fn is_degraded(&self) -> bool {
        match self {
            Said::Decided { decision, .. } => decision.degraded,
            Said::Failed => true,
            Said::Nothing => false,
        }
    }
}

/// What the store says of each descriptor.
pub(super) async fn decide(
    exchange: &Exchange<'_>,
    asked: &[Asked<'_>],
) -> Result<Vec<Said>, Refusal> {
    let mut batch = Batch::default();
    let places = match exchange.live.envoy.charging {
        Charging::Atomic => batch.together(asked),
        Charging::Reference => batch.each(asked),
    };
    batch.hold_to(exchange.live.bounds.checks)?;
    if batch.requests.is_empty() {
        return Ok(asked.iter().map(|_| Said::Nothing).collect());
    }
    let requests: Vec<_> =
        batch.requests.iter().filter_map(|request| batch.request(request)).collect();
    let timed = exchange.timed(Surface::Envoy);
    let patience = patience_of(exchange.caller.headers());
    let answers = exchange.daemon.limiter().decide_batch_within(&requests, patience).await;
    let said: Vec<_> = places.iter().map(|place| place.said(&answers)).collect();
    let decided = || asked.iter().zip(&said).filter_map(decided);
    if decided().next().is_some() {
        timed.decided(decided());
    } else if let Some(error) = answers.iter().find_map(|answer| answer.as_ref().err()) {
        timed.refused(asked.iter().filter_map(|x| x.target.policy()), error);
    }
    refuse(&answers, &said)?;
    Ok(said)
}

/// A decision that is counted: what gives back decides nothing.
fn decided<'a>((asked, said): (&'a Asked<'_>, &'a Said)) -> Option<(&'a Policy, &'a Decision)> {
    match (said, asked.hits) {
        (Said::Decided { decision, .. }, Hits::Charge(_)) => {
            asked.target.policy().map(|policy| (policy, decision))
        }
        _ => None,
    }
}

/// Refuses a request that is at fault itself, and one of which nothing was decided.
fn refuse(answers: &[Result<Answer, StoreError>], said: &[Said]) -> Result<(), Refusal> {
    let mut errors = answers.iter().filter_map(|answer| answer.as_ref().err());
    if let Some(error) = errors.clone().find(|error| error.failure().is_none()) {
        return Err(Problem::from(error.clone()).into());
    }
    let is_decided = said.iter().any(|x| matches!(x, Said::Decided { .. }));
    match errors.next() {
        Some(error) if !is_decided => Err(Problem::from(error.clone()).into()),
        _ => Ok(()),
    }
}

impl<'a> Batch<'a> {
    /// All that is spent in one request, all or nothing; what is given back is of no one's concern.
    fn together(&mut self, asked: &'a [Asked<'a>]) -> Vec<Place> {
        let mut places = vec![Place::default(); asked.len()];
        for (asked, place) in asked.iter().zip(&mut places) {
            if let (Some(policy), Hits::Charge(cost)) = (asked.target.policy(), asked.hits) {
                place.at = Some((0, self.checks.len()));
                self.checks.push(check(asked, policy, cost));
            }
        }
        if !self.checks.is_empty() {
            // Nothing is charged of a request that is over whatever the store says.
            let stops = |x: &Asked<'_>| {
                x.target.is_always_over() && !x.target.is_shadow() && !x.is_quota(false)
            };
            let verb = if asked.iter().any(stops) {
                Operation::Peek
            } else {
                Operation::Check { lease: None }
            };
            self.requests.push((verb, 0..self.checks.len()));
        }
        for (asked, place) in asked.iter().zip(&mut places) {
            self.refund(asked, place);
        }
        places
    }

    /// Each descriptor by itself.
    fn each(&mut self, asked: &'a [Asked<'a>]) -> Vec<Place> {
        let mut places = vec![Place::default(); asked.len()];
        for (asked, place) in asked.iter().zip(&mut places) {
            if let (Some(policy), Hits::Charge(cost)) = (asked.target.policy(), asked.hits) {
                if cost > Cost::ONE {
                    place.before =
                        Some(self.ask(Operation::Peek, check(asked, policy, Cost::ZERO)));
                }
                // The reference charges also what could never pass.
                place.is_penalty = is_charged_for_never(policy, cost);
                let verb = match place.is_penalty {
                    true => Operation::Penalize,
                    false => Operation::Check { lease: None },
                };
                place.at = Some((self.ask(verb, check(asked, policy, cost)), 0));
            }
            self.refund(asked, place);
        }
        places
    }

    fn refund(&mut self, asked: &'a Asked<'a>, place: &mut Place) {
        if let (Some(policy), Hits::Refund(cost)) = (asked.target.policy(), asked.hits) {
            let verb = Operation::Refund { time: None };
            place.at = Some((self.ask(verb, check(asked, policy, cost)), 0));
        }
    }

    /// Asks this of one check; which request that is.
    fn ask(&mut self, verb: Operation, check: Check<'a>) -> usize {
        let at = self.checks.len();
        self.checks.push(check);
        self.requests.push((verb, at..at + 1));
        self.requests.len() - 1
    }

    fn request(&self, (verb, checks): &(Operation, Range<usize>)) -> Option<Request<'_>> {
        let checks = self.checks.get(checks.clone())?;
        Some(Request { operation: *verb, checks, request_id: None })
    }

    /// Refuses more checks in one request than may be.
    fn hold_to(&self, most: usize) -> Result<(), Refusal> {
        let many = self.requests.first().map_or(0, |(_, checks)| checks.len());
        if many <= most {
            return Ok(());
        }
        Err(Problem::bad(format!(
            "{many} descriptors are limited, and at most {most} are charged all or none; send \
             fewer, or set envoy.charging to reference"
        ))
        .into())
    }
}

fn check<'a>(asked: &'a Asked<'_>, policy: &'a Policy, cost: Cost) -> Check<'a> {
    Check { policy, key: asked.target.key().as_bytes(), cost }
}

/// Whether this is a cost that never passes, and that is charged all the same.
fn is_charged_for_never(policy: &Policy, cost: Cost) -> bool {
    let mut limits = policy.limits().iter();
    limits.clone().all(|limit| limit.counts_denied())
        && limits.any(|limit| cost.get() > limit.capacity())
}

impl Place {
    fn said(self, answers: &[Result<Answer, StoreError>]) -> Said {
        let Some((request, check)) = self.at else { return Said::Nothing };
        let decision = |request: usize, check: usize| {
            answers.get(request)?.as_ref().ok()?.decisions.get(check)
        };
        match decision(request, check) {
            Some(value) => {
                let before = self.before.and_then(|before| decision(before, 0));
                let before =
                    before.filter(|before| !before.degraded).map(|before| before.remaining);
                let mut decision = value.clone();
                if self.is_penalty {
                    (decision.allowed, decision.never) = (false, true);
                    decision.reason = Reason::Never;
                }
                Said::Decided { decision, before, is_penalty: self.is_penalty }
            }
            None => Said::Failed,
        }
    }
}
