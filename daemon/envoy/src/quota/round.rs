//! A round of assignments: the leases and tokens of several buckets, in a few calls of the store.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{Cost, Decision, Operation, Policy, Reason, Timestamp, random_id};
use tollgate_engine::{
    Action, Call, CheckRequest, Checks, Counting, Error, Outcome, RequestContext,
};

use super::bucket::{Bucket, Given};
use super::division::{Division, digits, sum};

/// The longest time of one of the four batches of a round.
const DEADLINE: Duration = Duration::from_millis(250);

/// A bucket of a round, with the division of its limit.
#[derive(Debug)]
pub(super) struct Part<'b> {
    pub(super) bucket: &'b mut Bucket,
    pub(super) division: Division,
    pub(super) key: Vec<u8>,
    /// The units that it should have, and those that are available to all clients.
    target: u64,
    available: u64,
    /// What an operator has decided about the key: whether all its requests pass.
    pub(super) fixed: Option<bool>,
    /// Whether the client keeps what it has from before this stream.
    pub(super) waits: bool,
    /// The first error of the store.
    pub(super) error: Option<Error>,
}

/// The token bucket for a client, or none: it is to deny all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TokenBucket {
    pub(super) max_tokens: u64,
    pub(super) tokens_per_fill: u64,
    pub(super) fill: u64,
    /// Whether the client has one with another fill interval, which Envoy replaces only by way of
    /// a denial.
    pub(super) replaces: bool,
}

/// An operation on one of the policies of a part.
#[derive(Clone, Copy, Debug)]
struct Step {
    part: usize,
    policy: Ledger,
    operation: Operation,
    cost: u64,
}

/// A policy of a division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ledger {
    /// The policy itself, for operators' decisions about the key.
    Own,
    Rates,
    /// The digit of this index.
    Wants(usize),
    Starts,
}

impl Ledger {
    const fn policy(self, division: &Division) -> &Policy {
        match self {
            Ledger::Own => &division.policy,
            Ledger::Rates => &division.rates,
            Ledger::Wants(0) => &division.wants[0],
            Ledger::Wants(_) => &division.wants[1],
            Ledger::Starts => &division.starts,
        }
    }
}

impl<'b> Part<'b> {
    pub(super) fn new(bucket: &'b mut Bucket, division: Division, key: Vec<u8>) -> Self {
        if bucket.fill != division.fill {
            bucket.leases.clear();
            bucket.fill = division.fill;
        }
        let (target, available, fixed, waits, error) = (0, 0, None, false, None);
        Part { bucket, division, key, target, available, fixed, waits, error }
    }

    /// Whether it has less than it should have, so that it is tried again soon.
    pub(super) fn lacks(&self) -> bool {
        if self.fixed.is_some() {
            return false;
        }
        let tokens = self.bucket.given.map_or(0, |given| given.max_tokens);
        let units = self.bucket.units();
        units < self.target - self.target / 4 || tokens < self.division.max_tokens(units) / 2
    }
}

/// Renews and acquires the leases of all parts, and takes the tokens that come into being. Returns
/// the token bucket of each part; failed and waiting parts have none.
pub(super) async fn prepare(
    context: &RequestContext<'_>,
    parts: &mut [Part<'_>],
    now: Timestamp,
) -> Vec<Option<TokenBucket>> {
    withdraw_demands(context, parts).await;
    sum_demands(context, parts).await;
    renew(context, parts).await;
    take_tokens(context, parts, now).await
}

/// Gives up the demands of the last round, where they have changed.
async fn withdraw_demands(context: &RequestContext<'_>, parts: &mut [Part<'_>]) {
    let mut steps = Vec::new();
    for (index, part) in parts.iter_mut().enumerate() {
        if !part.bucket.update_demand(&part.division) {
            continue;
        }
        for (digit, lease) in part.bucket.wants.iter_mut().enumerate() {
            if let Some(lease) = lease.take() {
                steps.push(Step::new(index, Ledger::Wants(digit), Operation::Release { lease }));
            }
        }
    }
    execute(context, parts, &steps).await;
}

/// Tells the demands to all daemons, and finds out the demand of all clients and the units that are
/// available.
async fn sum_demands(context: &RequestContext<'_>, parts: &mut [Part<'_>]) {
    let mut steps = Vec::new();
    for (index, part) in parts.iter_mut().enumerate() {
        for (digit, cost) in digits(part.bucket.parts).into_iter().enumerate() {
            let operation = match part.bucket.wants[digit] {
                Some(lease) => Operation::Renew { lease },
                None if cost == 0 => Operation::Peek,
                None => Operation::Acquire { lease: random_id() },
            };
            steps.push(Step { cost, ..Step::new(index, Ledger::Wants(digit), operation) });
        }
        steps.push(Step::new(index, Ledger::Rates, Operation::Peek));
        steps.push(Step::new(index, Ledger::Own, Operation::Peek));
    }
    let mut remaining = vec![[0; 2]; parts.len()];
    for (step, decision) in execute(context, parts, &steps).await {
        let part = &mut parts[step.part];
        match (step.policy, step.operation) {
            (Ledger::Wants(digit), operation) => {
                remaining[step.part][digit] = decision.remaining;
                match operation {
                    Operation::Acquire { lease } if decision.allowed => {
                        part.bucket.wants[digit] = Some(lease);
                    }
                    Operation::Renew { .. } if !decision.changed => {
                        part.bucket.wants[digit] = None;
                    }
                    _ => {}
                }
            }
            (Ledger::Own, _) => part.fixed = fixed(decision.reason),
            _ => part.available = decision.remaining,
        }
    }
    let both = parts.iter_mut().zip(remaining);
    for (part, remaining) in both.filter(|(part, _)| part.error.is_none()) {
        part.bucket.sum = sum(remaining).max(part.bucket.parts);
        part.target = part.division.share(part.bucket.parts, part.bucket.sum);
    }
}

/// Renews the leases of units that are needed, lets the others expire, and acquires those that are
/// missing.
async fn renew(context: &RequestContext<'_>, parts: &mut [Part<'_>]) {
    let mut steps = Vec::new();
    // The target of a failed part is not known.
    let parts_to_renew = parts.iter_mut().enumerate().filter(|(_, part)| part.error.is_none());
    for (index, part) in parts_to_renew {
        part.bucket.shrink(part.target);
        for (lease, _) in &part.bucket.leases {
            steps.push(Step::new(index, Ledger::Rates, Operation::Renew { lease: *lease }));
        }
        for cost in part.bucket.growth(&part.division, part.target, part.available) {
            let operation = Operation::Acquire { lease: random_id() };
            steps.push(Step { cost, ..Step::new(index, Ledger::Rates, operation) });
        }
    }
    for (step, decision) in execute(context, parts, &steps).await {
        let leases = &mut parts[step.part].bucket.leases;
        match step.operation {
            Operation::Acquire { lease } if decision.allowed => leases.push((lease, step.cost)),
            // It expired, so that the assignment does not include it.
            Operation::Renew { lease } if !decision.changed => {
                leases.retain(|(held, _)| *held != lease);
            }
            _ => {}
        }
    }
}

/// Takes the tokens that come into being with the assignments.
async fn take_tokens(
    context: &RequestContext<'_>,
    parts: &mut [Part<'_>],
    now: Timestamp,
) -> Vec<Option<TokenBucket>> {
    let mut steps = Vec::new();
    for (index, part) in parts.iter_mut().enumerate() {
        part.waits = part.bucket.waits(part.target, now);
        if part.waits || part.fixed.is_some() {
            continue;
        }
        let most = part.division.max_tokens(part.bucket.units());
        let active =
            part.bucket.active(part.division.fill, now).map_or(0, |given| given.max_tokens);
        let cost = most.saturating_sub(active);
        if cost > 0 {
            steps.push(Step { cost, ..Step::new(index, Ledger::Starts, Operation::Take) });
        }
    }
    let mut taken = vec![0; parts.len()];
    for (step, decision) in execute(context, parts, &steps).await {
        taken[step.part] = decision.granted;
    }
    let both = parts.iter_mut().zip(taken);
    both.map(|(part, taken)| part.token_bucket(taken, now)).collect()
}

impl Part<'_> {
    /// The token bucket with the leases and these additional tokens, which the client now has.
    fn token_bucket(&mut self, taken: u64, now: Timestamp) -> Option<TokenBucket> {
        if self.error.is_some() || self.waits {
            return None;
        }
        if self.fixed.is_some() {
            self.bucket.given = None;
            return None;
        }
        let (units, fill) = (self.bucket.units(), self.division.fill);
        let active = self.bucket.active(fill, now).map_or(0, |given| given.max_tokens);
        let max_tokens = self.division.max_tokens(units).min(active + taken);
        let replaces = self.bucket.given.is_some_and(|given| given.fill != fill);
        self.bucket.given = (max_tokens > 0).then_some(Given { max_tokens, fill, sent: now });
        let tokens_per_fill = self.division.refill(units);
        (max_tokens > 0).then_some(TokenBucket { max_tokens, tokens_per_fill, fill, replaces })
    }
}

impl Step {
    const fn new(part: usize, policy: Ledger, operation: Operation) -> Self {
        Step { part, policy, operation, cost: 1 }
    }
}

/// Whether all requests of a key pass or none, if not its limits decide.
const fn fixed(reason: Reason) -> Option<bool> {
    match reason {
        Reason::AllowList => Some(true),
        Reason::Blocked | Reason::DenyList => Some(false),
        _ => None,
    }
}

/// Executes the steps of parts without errors, and returns the decisions. The first error of a part
/// ends its round.
async fn execute(
    context: &RequestContext<'_>,
    parts: &mut [Part<'_>],
    steps: &[Step],
) -> Vec<(Step, Decision)> {
    let steps: Vec<_> =
        steps.iter().filter(|step| parts[step.part].error.is_none()).copied().collect();
    let mut calls: Vec<_> = steps.iter().map(|step| call(&parts[step.part], *step)).collect();
    let results = context.execute_each(&mut calls, DEADLINE).await;
    drop(calls);
    let mut decisions = Vec::with_capacity(steps.len());
    for (step, result) in steps.into_iter().zip(results) {
        match result {
            Ok(outcome) => decisions.push((step, decision(&outcome))),
            Err(error) => {
                parts[step.part].error.get_or_insert(error);
            }
        }
    }
    decisions
}

fn decision(outcome: &Outcome) -> Decision {
    outcome.decision(0).clone()
}

fn call<'p>(part: &'p Part<'_>, step: Step) -> Call<'p, 'p> {
    let policy = Cow::Borrowed(step.policy.policy(&part.division));
    // Demands, units and tokens are far below the greatest cost.
    let cost = Cost::new(step.cost).unwrap_or(Cost::MAX);
    let check = CheckRequest::new(policy, Cow::Borrowed(&*part.key), cost);
    Call::new(Action::Execute(step.operation), Checks::One(check))
        .with_counting(Counting::Nothing)
        .with_store_required(true)
}
