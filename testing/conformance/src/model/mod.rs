//! The reference model of the decisions that every store must make. It shares no code with the engine.
//!
//! It uses 128-bit integers, plain lists, and searches instead of closed forms: a retry is the first
//! time at which the model admits. It prefers clarity to speed.

mod bans;
mod buckets;
mod check;
mod describe;
mod expected;
mod fixed_window;
mod key;
mod leases;
mod limit;
mod number;
mod operations;
mod request_ids;
mod settle;
mod shape;
mod sliding_window;
mod stored;
mod token_bucket;
mod validate;

use std::collections::BTreeMap;

use tollgate_algorithms::{Check, Kind, Micros, Operation, Request, RequestError, Spec, Timestamp};

use check::Run;
pub use expected::Expected;
use key::{Block, Key};
use leases::LeaseSet;
use number::Int;
use request_ids::Memory;

/// The error of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The request cannot be decided; a store reports the same error.
    Request(RequestError),
    /// No tick makes the limit exact; the engine should have rejected it.
    Inexact,
    /// The model does not support the operation or the kind of limit.
    Unknown,
}

impl std::fmt::Display for ModelError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ModelError::Request(request) => request.fmt(f),
            ModelError::Inexact => f.write_str("no tick makes this limit exact"),
            ModelError::Unknown => f.write_str("the model does not know this operation or kind"),
        }
    }
}

impl std::error::Error for ModelError {}

impl From<RequestError> for ModelError {
    fn from(error: RequestError) -> Self {
        ModelError::Request(error)
    }
}

/// The decision about a check.
type Answer = Result<Expected, ModelError>;

/// The identity of state: the name of the policy and the key.
type Place = (String, Vec<u8>);

fn place(check: &Check<'_>) -> Place {
    (check.policy.name().to_owned(), check.key.to_vec())
}

/// A store as plain maps of keys, blocks and request ids.
#[derive(Clone, Debug, Default)]
pub struct Model {
    keys: BTreeMap<Place, Key>,
    blocks: BTreeMap<Place, Block>,
    bans: BTreeMap<Place, bans::Record>,
    memory: Memory,
}

impl Model {
    /// Decides a request at this time. Returns a decision for each check.
    ///
    /// # Errors
    /// The request cannot be decided, or the model does not support it.
    pub fn decide(
        &mut self,
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Vec<Expected>, ModelError> {
        validate::validate(request)?;
        let now = Int::from(now.as_micros());
        self.advance_to(now);
        if request.operation == Operation::Settle {
            return self.settle(request, now);
        }
        if let Some(answer) = self.memory.recall(request, now)? {
            return Ok(answer);
        }
        let decided = request.checks.iter().zip(self.decide_new(request, now)?);
        let ignore =
            |(check, decision)| describe::ignore_shadow(&request.operation, check, decision);
        let answer: Vec<_> = decided.map(ignore).collect();
        self.memory.remember(request, &answer, now);
        Ok(answer)
    }

    fn decide_new(&mut self, request: &Request<'_>, now: Int) -> Result<Vec<Expected>, ModelError> {
        let mut decide_all =
            |lease, is_peek| self.decide_all(request.checks, Run { lease, is_peek, now });
        match request.operation {
            Operation::Check { lease } => decide_all(lease, false),
            Operation::Acquire { lease } => decide_all(Some(lease), false),
            Operation::Peek => decide_all(None, true),
            operation => {
                let decide = |check| self.decide_one(&operation, check, now);
                request.checks.iter().map(decide).collect()
            }
        }
    }

    fn decide_one(&mut self, operation: &Operation, check: &Check<'_>, now: Int) -> Answer {
        let units = Int::from(check.cost.get());
        match *operation {
            Operation::Take => self.take(check, now),
            Operation::Reserve { id, max_wait } => {
                self.reserve(check, id, Int::from(max_wait.get()), now)
            }
            Operation::Cancel { id } => self.cancel(check, id, now),
            Operation::Refund { time } => {
                let charged = time.map(|time| Int::from(time.as_micros()));
                self.change(check, now, |limit| limit.refund(units, charged))
            }
            Operation::Penalize => self.change(check, now, |limit| limit.penalize(units)),
            Operation::Backfill { limit, time } => {
                self.backfill(check, usize::from(limit), Int::from(time.as_micros()), now)
            }
            Operation::Reset => self.reset(check, now),
            Operation::Block { span } => {
                self.block(check, span.map(|span| Int::from(span.get())), now)
            }
            Operation::Unblock => self.unblock(check, now),
            Operation::Renew { lease } => self.change_lease(check, lease, now, LeaseSet::renew),
            Operation::Release { lease } => self.change_lease(check, lease, now, LeaseSet::release),
            _ => Err(ModelError::Unknown),
        }
    }
}

/// The tick of a limit with these numbers, or `None` if no tick makes it exact, so that it should be
/// rejected.
#[must_use]
pub fn tick_of(spec: &Spec) -> Option<Micros> {
    let (count, window) = (Int::from(spec.count), Int::from(spec.window.get()));
    let capacity = Int::from(spec.capacity());
    let tick = match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            number::tick(count, window, number::bucket_product(count, capacity))
        }
        Kind::Sliding => number::tick(count, window, number::weighted_product(capacity)),
        // The sum of all buckets, each of which may hold twice the capacity. A strict version of the
        // limit may have left one more bucket.
        Kind::SlidingBy { precision, .. } => {
            let buckets = window / Int::from(precision.get()) + 1;
            (2 * capacity * buckets < number::EXACT).then_some(1)
        }
        _ => (2 * capacity < number::EXACT).then_some(1),
    };
    tick.map(describe::micros)
}
