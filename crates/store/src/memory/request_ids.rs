//! Answers to requests that carry an id: a repeat within the horizon gets the first one again.

use std::collections::{HashMap, VecDeque};

use tollgate_core::{Check, Id, Operation, Request, Timestamp};

use crate::store::Answer;

/// A request as its id remembers it: equal for the same verb, policies, keys and costs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Asked {
    verb: Operation,
    checks: Box<[AskedCheck]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct AskedCheck {
    policy: Box<str>,
    key: Box<[u8]>,
    cost: u64,
}

impl Asked {
    fn of(request: &Request<'_>) -> Self {
        let check = |check: &Check<'_>| AskedCheck {
            policy: check.policy.name().into(),
            key: check.key.into(),
            cost: check.cost.get(),
        };
        // Ids are drawn anew for a repeat that brings none, so they are not part of what was asked.
        let unnamed = Id::from_u128(0);
        let verb = match request.verb {
            Operation::Check { .. } => Operation::Check { lease: None },
            Operation::Acquire { .. } => Operation::Acquire { lease: unnamed },
            Operation::Reserve { max_wait, .. } => Operation::Reserve { id: unnamed, max_wait },
            verb => verb,
        };
        Asked { verb, checks: request.checks.iter().map(check).collect() }
    }
}

#[derive(Debug)]
struct Remembered {
    asked: Asked,
    answer: Answer,
    until: Timestamp,
}

/// The remembered answers of a part of all ids.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    by_id: HashMap<Box<[u8]>, Remembered>,
    /// In the order in which they are forgotten.
    order: VecDeque<(Timestamp, Box<[u8]>)>,
}

/// What an id says of a request.
pub(crate) enum Known {
    New,
    Repeat(Answer),
    /// The id was used with other arguments.
    Reused,
}

impl RequestIds {
    /// Looks a request up by its id.
    pub(crate) fn look_up(&mut self, id: &[u8], request: &Request<'_>, now: Timestamp) -> Known {
        self.forget(now);
        let Some(known) = self.by_id.get(id).filter(|by_id| now < by_id.until) else {
            return Known::New;
        };
        if known.asked != Asked::of(request) {
            return Known::Reused;
        }
        let mut answer = known.answer.clone();
        answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
        Known::Repeat(answer)
    }

    /// Remembers an admitted answer; with more than `most` the oldest is forgotten.
    pub(crate) fn remember(
        &mut self,
        id: &[u8],
        request: &Request<'_>,
        answer: &Answer,
        until: Timestamp,
        most: usize,
    ) {
        while self.order.len() >= most.max(1) {
            self.forget_oldest();
        }
        let remembered = Remembered { asked: Asked::of(request), answer: answer.clone(), until };
        self.by_id.insert(id.into(), remembered);
        self.order.push_back((until, id.into()));
    }

    fn forget(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(until, _)| now >= *until) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((until, id)) = self.order.pop_front() else { return };
        if self.by_id.get(&id).is_some_and(|by_id| by_id.until == until) {
            self.by_id.remove(&id);
        }
    }
}
