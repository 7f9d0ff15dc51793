//! Request ids: the first admitted answer, for as long as a repeat may come.

use std::collections::BTreeMap;

use tollgate_core::{Id, Operation, Request, RequestError};

use super::expected::Expected;
use super::number::Int;
use super::{Place, place};

/// How long an answer is remembered, in µs.
const HORIZON: Int = 30_000_000;

/// Answers by request id.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(BTreeMap<Vec<u8>, Remembered>);

/// All that a request asks: another is a repeat only if it asks the same.
type Arguments = (Operation, Vec<(Place, u64)>);

#[derive(Clone, Debug)]
struct Remembered {
    until: Int,
    arguments: Arguments,
    answer: Vec<Expected>,
    /// Whether its end has been seen: then it may have been forgotten.
    lapsed: bool,
}

fn arguments(request: &Request<'_>) -> Arguments {
    let checks = request.checks.iter().map(|check| (place(check), check.cost.get()));
    let operation = match request.operation {
        // Who repeats one may have drawn another id for its lease or reservation: the first holds.
        Operation::Check { .. } => Operation::Check { lease: None },
        Operation::Acquire { .. } => Operation::Acquire { lease: Id::from_u128(0) },
        Operation::Reserve { max_wait, .. } => {
            Operation::Reserve { id: Id::from_u128(0), max_wait }
        }
        operation => operation,
    };
    (operation, checks.collect())
}

/// The id of a request that changes something; a peek has no use for one.
fn id<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    request.request_id.filter(|_| request.operation != Operation::Peek)
}

impl Memory {
    /// Notes what has lapsed by now.
    pub(super) fn see(&mut self, now: Int) {
        self.0.values_mut().for_each(|value| value.lapsed |= now >= value.until);
    }

    /// Whether a clock that has stepped back has come before the end of what had lapsed.
    pub(super) fn is_unsure(&self, request: &Request<'_>, now: Int) -> bool {
        let remembered = id(request).and_then(|x| self.0.get(x));
        remembered.is_some_and(|remembered| remembered.lapsed && now < remembered.until)
    }
    /// The earlier answer to this request, marked as such.
    pub(super) fn recall(
        &self,
        request: &Request<'_>,
        now: Int,
    ) -> Result<Option<Vec<Expected>>, RequestError> {
        let remembered = id(request).and_then(|x| self.0.get(x)).filter(|x| now < x.until);
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

    /// Remembers an answer that admits.
    pub(super) fn remember(&mut self, request: &Request<'_>, answer: &[Expected], now: Int) {
        let admitted = answer.iter().all(|answer| answer.allowed);
        if let Some(id) = id(request).filter(|_| admitted) {
            let (until, arguments) = (now + HORIZON, arguments(request));
            let answer = answer.to_vec();
            let remembered = Remembered { until, arguments, answer, lapsed: false };
            self.0.insert(id.to_vec(), remembered);
        }
    }
}
