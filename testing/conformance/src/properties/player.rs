//! Plays the steps of a trace: turns what is relative in them into requests at times.

use std::fmt;

use tollgate_core::{Check, Cost, Id, Micros, Operation, Policy, Request, Timestamp};

use super::trace::{Amount, Ask, Charged, Move, Step};
use crate::model::Expected;

/// A request with everything in it, at its time.
#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    pub(crate) time: Timestamp,
    pub(crate) operation: Operation,
    /// Policy, key, cost.
    pub(crate) checks: Vec<(Policy, Vec<u8>, Cost)>,
    pub(crate) request_id: Option<Vec<u8>>,
}

impl TestRequest {
    /// Passes the request to the system that decides it.
    pub(crate) fn with<T>(&self, decide: impl FnOnce(&Request<'_>) -> T) -> T {
        decide(&self.request(&self.checks()))
    }

    pub(crate) fn checks(&self) -> Vec<Check<'_>> {
        let checks = self.checks.iter();
        checks.map(|(policy, key, cost)| Check { policy, key, cost: *cost }).collect()
    }

    pub(crate) fn request<'a>(&'a self, checks: &'a [Check<'a>]) -> Request<'a> {
        Request { operation: self.operation, checks, request_id: self.request_id.as_deref() }
    }
}

/// One line: when, what, and of whom.
impl fmt::Display for TestRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {} {:?}", self.time, self.operation)?;
        for (policy, key, cost) in &self.checks {
            let shadow = if policy.is_shadow() { " shadow" } else { "" };
            let (name, entries) = (policy.name(), policy.log_entries());
            write!(f, " [{name}{shadow} \"{policy}\" log {entries}")?;
            write!(f, ", key {}, cost {}]", key.escape_ascii(), cost.get())?;
        }
        match &self.request_id {
            Some(request_id) => write!(f, " request {}", request_id.escape_ascii()),
            None => Ok(()),
        }
    }
}

/// A time in the middle of things: Thursday 2025-11-20, 14:46:40.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);

/// Two years before there is no more time: what would end after that ends with it.
const LATEST: Timestamp =
    Timestamp::MAX.saturating_sub(Micros::MAX_WINDOW).saturating_sub(Micros::MAX_WINDOW);

/// Where a trace has come to.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    now: Timestamp,
    /// Whether the clock may step back.
    backwards: bool,
    retry: Option<Timestamp>,
    reset: Option<Timestamp>,
    /// When each request so far was decided.
    times: Vec<Timestamp>,
}

impl Player {
    pub(crate) fn at(now: Timestamp, backwards: bool) -> Self {
        Player { now, backwards, retry: None, reset: None, times: Vec::new() }
    }

    /// Moves the time and makes the step's request of the policies.
    pub(crate) fn next(&mut self, policies: &[Policy], step: &Step) -> TestRequest {
        let first = &policies[step.of[0].policy];
        let moved = self.moved(step.moves, first.limits()[0].spec().window);
        self.now = if self.backwards { moved } else { moved.max(self.now) }.min(LATEST);
        let checks = step.of.iter().map(|of| {
            let policy = policies[of.policy].clone();
            let cost = cost(of.cost, &policy);
            (policy, vec![b'k', of.key], cost)
        });
        TestRequest {
            time: self.now,
            operation: self.operation(step.ask, first.limits()[0].spec().window),
            checks: checks.collect(),
            request_id: step.request_id.map(|request_id| vec![b'r', request_id]),
        }
    }

    /// Learns from the answer what the next moves may refer to.
    pub(crate) fn learn(&mut self, answer: &[Expected]) {
        self.times.push(self.now);
        let later = |span: Option<Micros>| span.map(|span| self.now.saturating_add(span));
        self.retry =
            later(answer.iter().filter_map(|answer| answer.retry_after).max()).or(self.retry);
        self.reset =
            later(answer.iter().filter_map(|answer| answer.reset_after).max()).or(self.reset);
    }

    fn moved(&self, moves: Move, window: Micros) -> Timestamp {
        match moves {
            Move::Stay => self.now,
            Move::By(by) => shifted(self.now, by),
            Move::Retry(by) => shifted(self.retry.unwrap_or(self.now).max(self.now), by),
            Move::Reset(by) => shifted(self.reset.unwrap_or(self.now).max(self.now), by),
            Move::Window(part, by) => {
                let span = Micros::new(window.get() / 1_000 * u64::from(part));
                shifted(self.now.saturating_add(span), by)
            }
            Move::Edge(by) => {
                let edge = self.now.as_micros().next_multiple_of(window.get());
                shifted(Timestamp::from_micros(edge), by)
            }
        }
    }

    fn operation(&self, ask: Ask, window: Micros) -> Operation {
        let id = |byte: u8| Id::from_u128(u128::from(byte));
        let part = |n: u32| Micros::new(window.get() / 1_000 * u64::from(n));
        match ask {
            Ask::Check { lease } => Operation::Check { lease: lease.map(id) },
            Ask::Peek => Operation::Peek,
            Ask::Take => Operation::Take,
            Ask::Reserve { id: value, max_wait } => {
                let max_wait = max_wait.map_or(Micros::MAX_WINDOW, part);
                Operation::Reserve { id: id(value), max_wait }
            }
            Ask::Cancel { id: value } => Operation::Cancel { id: id(value) },
            Ask::Refund { charged } => Operation::Refund { time: self.charged(charged) },
            Ask::Penalize => Operation::Penalize,
            Ask::Reset => Operation::Reset,
            Ask::Block { thousandths } => Operation::Block { span: thousandths.map(part) },
            Ask::Unblock => Operation::Unblock,
            Ask::Acquire { lease } => Operation::Acquire { lease: id(lease) },
            Ask::Renew { lease } => Operation::Renew { lease: id(lease) },
            Ask::Release { lease } => Operation::Release { lease: id(lease) },
        }
    }

    fn charged(&self, charged: Charged) -> Option<Timestamp> {
        match charged {
            Charged::Unsaid => None,
            Charged::Ago(ago) => self.times.iter().rev().nth(ago).copied().or(Some(self.now)),
            Charged::Wrong(by) => Some(self.now.saturating_sub(Micros::new(by))),
        }
    }
}

/// A time so many µs on or back, as far as there is time.
pub(crate) fn shifted(time: Timestamp, by: i64) -> Timestamp {
    let span = Micros::new(by.unsigned_abs());
    if by < 0 { time.saturating_sub(span) } else { time.saturating_add(span) }
}

fn cost(amount: Amount, policy: &Policy) -> Cost {
    let capacity = policy.limits()[0].capacity();
    let units = match amount {
        Amount::Units(units) => units,
        Amount::Part(sixteenths, more) => capacity / 16 * sixteenths + more,
    };
    Cost::new(units).unwrap_or(Cost::MAX)
}
