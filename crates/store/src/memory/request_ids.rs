//! Idempotency: a request whose id was answered within the horizon gets the same answer again.

use std::collections::{HashMap, VecDeque};

use tollgate_core::{Check, Cost, Id, Operation, Request, Timestamp};

use crate::store::Answer;

/// The part of a request that a repeat must share: operation, policies, keys and costs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arguments {
    operation: Operation,
    checks: Box<[CheckArguments]>,
}

/// The policy, the key and the cost of a check.
type CheckArguments = (Box<str>, Box<[u8]>, Cost);

impl Arguments {
    fn new(request: &Request<'_>) -> Self {
        let check =
            |check: &Check<'_>| (Box::from(check.policy.name()), Box::from(check.key), check.cost);
        // A repeat without an id of its own gets a new random one, so ids are not compared.
        let any_id = Id::from_u128(0);
        let operation = match request.operation {
            Operation::Check { .. } => Operation::Check { lease: None },
            Operation::Acquire { .. } => Operation::Acquire { lease: any_id },
            Operation::Reserve { max_wait, .. } => Operation::Reserve { id: any_id, max_wait },
            operation => operation,
        };
        Arguments { operation, checks: request.checks.iter().map(check).collect() }
    }
}

#[derive(Debug)]
struct Record {
    arguments: Arguments,
    answer: Answer,
    expires_at: Timestamp,
}

/// The recent answers of one partition of the request ids.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    records: HashMap<Box<[u8]>, Record>,
    /// The ids in the order of expiry.
    order: VecDeque<(Timestamp, Box<[u8]>)>,
}

/// The result of looking up a request by its id.
pub(crate) enum Lookup {
    New,
    Repeat(Answer),
    /// The id was used with other arguments.
    Reused,
}

impl RequestIds {
    pub(crate) fn look_up(&mut self, id: &[u8], request: &Request<'_>, now: Timestamp) -> Lookup {
        self.remove_expired(now);
        let Some(record) = self.records.get(id).filter(|record| now < record.expires_at) else {
            return Lookup::New;
        };
        if record.arguments != Arguments::new(request) {
            return Lookup::Reused;
        }
        let mut answer = record.answer.clone();
        answer.decisions.iter_mut().for_each(|decision| decision.replayed = true);
        Lookup::Repeat(answer)
    }

    /// Records an answer; removes the oldest records beyond `max`.
    pub(crate) fn record(
        &mut self,
        id: &[u8],
        request: &Request<'_>,
        answer: &Answer,
        expires_at: Timestamp,
        max: usize,
    ) {
        while self.order.len() >= max.max(1) {
            self.remove_oldest();
        }
        let arguments = Arguments::new(request);
        let record = Record { arguments, answer: answer.clone(), expires_at };
        self.records.insert(id.into(), record);
        self.order.push_back((expires_at, id.into()));
    }

    fn remove_expired(&mut self, now: Timestamp) {
        while self.order.front().is_some_and(|(expires_at, _)| now >= *expires_at) {
            self.remove_oldest();
        }
    }

    fn remove_oldest(&mut self) {
        let Some((expires_at, id)) = self.order.pop_front() else { return };
        // The id may have been recorded again since.
        if self.records.get(&id).is_some_and(|record| record.expires_at == expires_at) {
            self.records.remove(&id);
        }
    }
}
