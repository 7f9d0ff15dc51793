//! Turns the steps of a trace, which are relative to earlier answers, into requests at absolute times.

use std::fmt;

use tollgate_algorithms::{Check, Cost, Id, Micros, Operation, Policy, Request, Timestamp};

use super::trace::{Amount, BackfillTime, Move, RefundTime, Step, StepOperation};
use crate::model::Expected;

/// An owned request and its time.
#[derive(Clone, Debug)]
pub(crate) struct TestRequest {
    pub(crate) time: Timestamp,
    pub(crate) operation: Operation,
    pub(crate) checks: Vec<TestCheck>,
    pub(crate) request_id: Option<Vec<u8>>,
}

/// Policy, key and cost.
type TestCheck = (Policy, Vec<u8>, Cost);

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

/// One line with the time, the operation and the checks.
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

/// Thursday 2025-11-20T14:46:40Z, at no edge of a window.
pub(crate) const START: Timestamp = Timestamp::from_micros(1_763_650_000_000_000);

/// Two windows before the last representable time, so that the ends of windows are representable.
const LATEST: Timestamp =
    Timestamp::MAX.saturating_sub(Micros::MAX_WINDOW).saturating_sub(Micros::MAX_WINDOW);

/// The state of a trace between its steps.
#[derive(Clone, Debug)]
pub(crate) struct Player {
    now: Timestamp,
    /// Whether the clock may step back.
    backwards: bool,
    retry: Option<Timestamp>,
    reset: Option<Timestamp>,
    /// The times of the requests so far.
    times: Vec<Timestamp>,
    /// The checks so far that have a request id.
    named: Vec<TestRequest>,
    /// The settlements so far.
    settled: Vec<TestRequest>,
}

impl Player {
    pub(crate) fn at(now: Timestamp, backwards: bool) -> Self {
        let (times, named, settled) = (Vec::new(), Vec::new(), Vec::new());
        Player { now, backwards, retry: None, reset: None, times, named, settled }
    }

    /// Advances the time and returns the request of the step.
    pub(crate) fn next(&mut self, policies: &[Policy], step: &Step) -> TestRequest {
        let first = &policies[step.checks[0].policy];
        let moved = self.moved(step.moves, first.limits()[0].spec().window);
        self.now = if self.backwards { moved } else { moved.max(self.now) }.min(LATEST);
        let checks = step.checks.iter().map(|check| {
            let policy = policies[check.policy].clone();
            let cost = cost(check.cost, &policy);
            (policy, vec![b'k', check.key], cost)
        });
        let mut request = TestRequest {
            time: self.now,
            operation: self.operation(step.operation, first),
            checks: checks.collect(),
            request_id: step.request_id.map(|request_id| vec![b'r', request_id]),
        };
        match step.operation {
            StepOperation::Check { .. } if request.request_id.is_some() => {
                self.named.push(request.clone());
            }
            StepOperation::Settle { ago, repeats } => {
                if let Some(charge) = self.named.iter().rev().nth(ago) {
                    settle(&mut request, charge);
                }
                let is_same = |settled: &&TestRequest| settled.request_id == request.request_id;
                match self.settled.iter().find(is_same).filter(|_| repeats) {
                    Some(settled) => request.checks.clone_from(&settled.checks),
                    None => self.settled.push(request.clone()),
                }
            }
            _ => {}
        }
        request
    }

    /// Records the retry and reset times that later steps refer to.
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

    fn operation(&self, operation: StepOperation, policy: &Policy) -> Operation {
        let window = policy.limits()[0].spec().window;
        let id = |byte: u8| Id::from_u128(u128::from(byte));
        let part = |n: u32| Micros::new(window.get() / 1_000 * u64::from(n));
        match operation {
            StepOperation::Check { lease } => Operation::Check { lease: lease.map(id) },
            StepOperation::Peek => Operation::Peek,
            StepOperation::Take => Operation::Take,
            StepOperation::Reserve { id: value, max_wait } => {
                let max_wait = max_wait.map_or(Micros::MAX_WINDOW, part);
                Operation::Reserve { id: id(value), max_wait }
            }
            StepOperation::Cancel { id: value } => Operation::Cancel { id: id(value) },
            StepOperation::Refund { time } => Operation::Refund { time: self.refund_time(time) },
            StepOperation::Penalize => Operation::Penalize,
            StepOperation::Backfill { limit, time } => {
                let own = policy.limits().get(usize::from(limit));
                let window = own.map_or(window, |limit| limit.spec().window);
                Operation::Backfill { limit, time: self.backfill_time(time, window) }
            }
            StepOperation::Settle { .. } => Operation::Settle,
            StepOperation::Reset => Operation::Reset,
            StepOperation::Block { thousandths } => {
                Operation::Block { span: thousandths.map(part) }
            }
            StepOperation::Unblock => Operation::Unblock,
            StepOperation::Acquire { lease } => Operation::Acquire { lease: id(lease) },
            StepOperation::Renew { lease } => Operation::Renew { lease: id(lease) },
            StepOperation::Release { lease } => Operation::Release { lease: id(lease) },
        }
    }

    fn backfill_time(&self, time: BackfillTime, window: Micros) -> Timestamp {
        match time {
            BackfillTime::Ago(ago) => self.times.iter().rev().nth(ago).copied().unwrap_or(self.now),
            BackfillTime::Window(part, more) => {
                let span = Micros::new(window.get() / 1_000 * u64::from(part));
                shifted(self.now.saturating_sub(span), more)
            }
            BackfillTime::Edge(ago, more) => {
                let window = window.get();
                let latest = self.now.as_micros() / window * window;
                let edge = latest.saturating_sub(u64::from(ago) * window);
                shifted(Timestamp::from_micros(edge), more)
            }
        }
    }

    fn refund_time(&self, time: RefundTime) -> Option<Timestamp> {
        match time {
            RefundTime::Unspecified => None,
            RefundTime::Ago(ago) => self.times.iter().rev().nth(ago).copied().or(Some(self.now)),
            RefundTime::Wrong(by) => Some(self.now.saturating_sub(Micros::new(by))),
        }
    }
}

/// Makes a request the settlement of a charge, with its own costs, and with its own versions of the
/// policies.
fn settle(request: &mut TestRequest, charge: &TestRequest) {
    let own = std::mem::take(&mut request.checks);
    let settled = charge.checks.iter().zip(own.iter().cycle());
    let check = |((policy, key, charged), (own, _, cost)): (&TestCheck, &TestCheck)| {
        let version = if own.name() == policy.name() { own } else { policy };
        // The cost of a lease cannot change.
        let cost = if policy.has_concurrent() { charged } else { cost };
        (version.clone(), key.clone(), *cost)
    };
    request.checks = settled.map(check).collect();
    request.request_id.clone_from(&charge.request_id);
}

/// The time `by` µs later or earlier, within the representable times.
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
