//! Request ids: an admitted decision is repeated for requests with the same id.

use std::collections::BTreeMap;

use tollgate_algorithms::{Id, Limit, Operation, Request, RequestError};

use super::expected::Expected;
use super::number::Int;
use super::{Place, place};

/// How long a decision is stored, in µs.
const HORIZON: Int = 30_000_000;

/// Answers by request id.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<Vec<u8>, CachedAnswer>);

/// The arguments of a request. A repeat must have the same ones.
type Arguments = (Operation, Vec<(Place, u64)>);

#[derive(Clone, Debug)]
struct CachedAnswer {
    until: Int,
    arguments: Arguments,
    answer: Vec<Expected>,
    /// The limits of each check's policy.
    limits: Vec<Vec<Limit>>,
    /// The actual costs of a settled request, and the answer to the settlement.
    settled: Option<(Vec<u64>, Vec<Expected>)>,
    /// Whether its end has passed at some earlier time, so that a store may have dropped it.
    lapsed: bool,
}

fn arguments(request: &Request<'_>) -> Arguments {
    let checks = request.checks.iter().map(|check| (place(check), check.cost.get()));
    let operation = match request.operation {
        // A repeat may have another id for its lease or reservation; the first one counts.
        Operation::Check { .. } => Operation::Check { lease: None },
        Operation::Acquire { .. } => Operation::Acquire { lease: Id::from_u128(0) },
        Operation::Reserve { max_wait, .. } => {
            Operation::Reserve { id: Id::from_u128(0), max_wait }
        }
        operation => operation,
    };
    (operation, checks.collect())
}

/// The id of the request. Peeks ignore it.
fn id<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    request.request_id.filter(|_| request.operation != Operation::Peek)
}

fn actual_costs(request: &Request<'_>) -> Vec<u64> {
    request.checks.iter().map(|check| check.cost.get()).collect()
}

/// What is known about the charge of a request id.
pub(super) enum Charges {
    /// The cost, the first answer and the limits of each check.
    Unsettled(Vec<(u64, Expected, Vec<Limit>)>),
    /// The answer to its settlement.
    Settled(Vec<Expected>),
}

impl Memory {
    /// Records what has expired by now.
    pub(super) fn advance_to(&mut self, now: Int) {
        self.0.values_mut().for_each(|value| value.lapsed |= now >= value.until);
    }

    /// Whether the clock has stepped back to before the end of an expired answer.
    pub(super) fn is_undefined(&self, request: &Request<'_>, now: Int) -> bool {
        let remembered = id(request).and_then(|id| self.0.get(id));
        remembered.is_some_and(|remembered| remembered.lapsed && now < remembered.until)
    }

    /// The first decision about this request, marked as a repeat.
    pub(super) fn recall(
        &self,
        request: &Request<'_>,
        now: Int,
    ) -> Result<Option<Vec<Expected>>, RequestError> {
        let remembered =
            id(request).and_then(|id| self.0.get(id)).filter(|answer| now < answer.until);
        let Some(remembered) = remembered else {
            return Ok(None);
        };
        if remembered.arguments != arguments(request) {
            return Err(RequestError::RequestIdReused);
        }
        let mut answer = remembered.answer.clone();
        answer.iter_mut().for_each(|answer| answer.replayed = true);
        Ok(Some(answer))
    }

    /// What the checks of a settlement were charged, with their first answers and limits.
    pub(super) fn charges(&self, request: &Request<'_>, now: Int) -> Result<Charges, RequestError> {
        let remembered =
            id(request).and_then(|id| self.0.get(id)).filter(|answer| now < answer.until);
        let remembered = remembered.ok_or(RequestError::UnknownCharge)?;
        let (operation, charged) = &remembered.arguments;
        let places = charged.iter().map(|(place, _)| place.clone());
        let is_same = places.eq(request.checks.iter().map(place));
        if !matches!(operation, Operation::Check { .. }) || !is_same {
            return Err(RequestError::UnknownCharge);
        }
        if let Some((costs, answer)) = &remembered.settled {
            if *costs != actual_costs(request) {
                return Err(RequestError::ChargeSettled);
            }
            let mut answer = answer.clone();
            answer.iter_mut().for_each(|answer| answer.replayed = true);
            return Ok(Charges::Settled(answer));
        }
        let answers = remembered.answer.iter().zip(&remembered.limits);
        let charge = |((_, cost), (answer, limits)): (&(Place, u64), (&Expected, &Vec<Limit>))| {
            (*cost, answer.clone(), limits.clone())
        };
        Ok(Charges::Unsettled(charged.iter().zip(answers).map(charge).collect()))
    }

    /// Stores the answer to a settlement until the charge is forgotten.
    pub(super) fn settle(&mut self, request: &Request<'_>, answer: &[Expected]) {
        if let Some(remembered) = id(request).and_then(|id| self.0.get_mut(id)) {
            remembered.settled = Some((actual_costs(request), answer.to_vec()));
        }
    }

    /// Stores a decision that admits.
    pub(super) fn remember(&mut self, request: &Request<'_>, answer: &[Expected], now: Int) {
        let admitted = answer.iter().all(|answer| answer.allowed);
        if let Some(id) = id(request).filter(|_| admitted) {
            let (until, arguments) = (now + HORIZON, arguments(request));
            let answer = answer.to_vec();
            let limits = request.checks.iter().map(|check| check.policy.limits().to_vec());
            let (limits, settled) = (limits.collect(), None);
            let remembered =
                CachedAnswer { until, arguments, answer, limits, settled, lapsed: false };
            self.0.insert(id.to_vec(), remembered);
        }
    }
}
