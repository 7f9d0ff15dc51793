//! The reference model: what every store must answer, from the same text as the engine and from
//! nothing else of it.
//!
//! Whole numbers of 128 bits, state as plain lists, and no closed forms where a search will do:
//! a retry is the first time at which the model's own rule admits. Clear before fast.

mod bucket;
mod check;
mod describe;
mod expected;
mod kept;
mod key;
mod leases;
mod limit;
mod log;
mod number;
mod operations;
mod precision;
mod remember;
mod shape;
mod tick;
mod validate;
mod weighted;
mod window;

use std::collections::BTreeMap;

use tollgate_core::{
    Check, Kind, Limit, Micros, Operation, Request, RequestError, Spec, Timestamp,
};

pub use expected::Expected;
use key::{Block, Key};
use number::Int;
use remember::Memory;

/// Why the model does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelError {
    /// The request is not one that can be decided; a store says the same.
    Request(RequestError),
    /// A limit exists whose numbers, by design §3.2, fit no tick: the engine took it wrongly.
    Inexact,
    /// An operation or a kind of limit that the model does not know yet.
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
    fn from(it: RequestError) -> Self {
        ModelError::Request(it)
    }
}

/// Where state lives: the policy's name and the key.
type Place = (String, Vec<u8>);

fn place(check: &Check<'_>) -> Place {
    (check.policy.name().to_owned(), check.key.to_vec())
}

/// A store in the plainest form: every key, every block and every answer that is remembered.
#[derive(Clone, Debug, Default)]
pub struct Model {
    keys: BTreeMap<Place, Key>,
    blocks: BTreeMap<Place, Block>,
    memory: Memory,
}

impl Model {
    /// Decides one request at this time, with one answer for each check.
    ///
    /// # Errors
    /// The request cannot be decided, or the model does not know what it asks.
    pub fn decide(
        &mut self,
        request: &Request<'_>,
        now: Timestamp,
    ) -> Result<Vec<Expected>, ModelError> {
        validate::validate(request)?;
        let now = Int::from(now.as_micros());
        self.see(now);
        if let Some(answer) = self.memory.recall(request, now)? {
            return Ok(answer);
        }
        let decided = request.checks.iter().zip(self.decide_anew(request, now)?);
        let ignore = |(check, x)| describe::ignore_shadow(&request.operation, check, x);
        let answer: Vec<_> = decided.map(ignore).collect();
        self.memory.remember(request, &answer, now);
        Ok(answer)
    }

    fn decide_anew(
        &mut self,
        request: &Request<'_>,
        now: Int,
    ) -> Result<Vec<Expected>, ModelError> {
        match request.operation {
            Operation::Check { lease } => return self.check(request.checks, lease, now),
            Operation::Acquire { lease } => return self.check(request.checks, Some(lease), now),
            Operation::Peek => return self.peek(request.checks, now),
            _ => {}
        }
        let mut answers = Vec::new();
        for check in request.checks {
            answers.push(self.decide_one(&request.operation, check, now)?);
        }
        Ok(answers)
    }

    fn decide_one(
        &mut self,
        operation: &Operation,
        check: &Check<'_>,
        now: Int,
    ) -> Result<Expected, ModelError> {
        match *operation {
            Operation::Take => self.take(check, now),
            Operation::Reserve { id, max_wait } => {
                self.reserve(check, id, Int::from(max_wait.get()), now)
            }
            Operation::Cancel { id } => self.cancel(check, id, now),
            Operation::Refund { time } => {
                self.refund(check, time.map(|time| Int::from(time.as_micros())), now)
            }
            Operation::Penalize => self.penalize(check, now),
            Operation::Reset => self.reset(check, now),
            Operation::Block { span } => {
                self.block(check, span.map(|span| Int::from(span.get())), now)
            }
            Operation::Unblock => self.unblock(check, now),
            Operation::Renew { lease } => self.renew(check, lease, now),
            Operation::Release { lease } => self.release(check, lease, now),
            _ => Err(ModelError::Unknown),
        }
    }
}

/// The tick of a limit of these numbers, in which its times are told; none if no tick makes it
/// exact, so that it should have been refused.
#[must_use]
pub fn tick_of(spec: &Spec) -> Option<Micros> {
    let (count, window) = (Int::from(spec.count), Int::from(spec.window.get()));
    let capacity = Int::from(spec.capacity());
    let tick = match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            tick::tick(count, window, tick::bucket_product(count, capacity))
        }
        Kind::Sliding => tick::tick(count, window, tick::weighted_product(capacity)),
        // Each bucket may hold twice the capacity, and they are summed; a form that is strict
        // may have left one more.
        Kind::SlidingBy { precision, .. } => {
            let buckets = window / Int::from(precision.get()) + 1;
            (2 * capacity * buckets < tick::EXACT).then_some(1)
        }
        _ => (2 * capacity < tick::EXACT).then_some(1),
    };
    tick.map(describe::micros)
}

/// Which of a policy's limits keep their state when it changes from `old` to `new`: for each of
/// the new ones the index of the old one whose state it takes.
#[must_use]
pub fn survivors(old: &[Limit], new: &[Limit]) -> Vec<Option<usize>> {
    let old = limit::Identity::of(old);
    let new = limit::Identity::of(new);
    new.iter().map(|new| old.iter().position(|other| other == new)).collect()
}
