//! A round of assignments: the leases and tokens of several buckets, in a few calls of the store.

use std::borrow::Cow;
use std::time::Duration;

use tollgate::{Cost, Decision, Operation, Policy, Reason, Timestamp, random_id};
use tollgate_engine::{
    Action, Call, CheckRequest, Checks, Counting, Error, Outcome, RequestContext,
};

use super::assignment::{Answer, TokenBucket};
use super::bucket::{Assignment, Bucket};
use super::division::{Division, digits, sum};

/// The longest time of one of the four batches of a round.
const DEADLINE: Duration = Duration::from_millis(250);

/// A bucket of a round, with the division of its limit.
#[derive(Debug)]
pub(super) struct PendingBucket<'b> {
    pub(super) bucket: &'b mut Bucket,
    pub(super) division: Division,
    pub(super) key: Vec<u8>,
    /// The units that it should have, and those that are available to all clients.
    target: u64,
    available: u64,
    /// The answer for a key that is blocked, or on a list of its policy.
    fixed: Option<Answer>,
    /// Whether the client keeps what it has from before this stream.
    waits: bool,
    /// The first error of the store.
    pub(super) error: Option<Error>,
}

/// An operation on one of the policies of a entry.
#[derive(Clone, Copy, Debug)]
struct Step {
    entry: usize,
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
    Demand(usize),
    Starts,
}

impl Ledger {
    const fn policy(self, division: &Division) -> &Policy {
        match self {
            Ledger::Own => &division.policy,
            Ledger::Rates => &division.rates,
            Ledger::Demand(0) => &division.demands[0],
            Ledger::Demand(_) => &division.demands[1],
            Ledger::Starts => &division.starts,
        }
    }
}

impl<'b> PendingBucket<'b> {
    pub(super) fn new(bucket: &'b mut Bucket, division: Division, key: Vec<u8>) -> Self {
        if bucket.fill != division.fill {
            bucket.leases.clear();
            bucket.fill = division.fill;
        }
        let (target, available, fixed, waits, error) = (0, 0, None, false, None);
        PendingBucket { bucket, division, key, target, available, fixed, waits, error }
    }

    /// Whether it has less than it should have, so that it is tried again soon.
    pub(super) fn lacks(&self) -> bool {
        if self.fixed.is_some() {
            return false;
        }
        let tokens = self.bucket.assignment.map_or(0, |assignment| assignment.max_tokens);
        let units = self.bucket.units();
        units < self.target - self.target / 4 || tokens < self.division.max_tokens(units) / 2
    }
}

/// Renews and acquires the leases of all entries, and takes the tokens that come into being. Returns
/// the answer to each entry; failed and waiting entries have none.
pub(super) async fn prepare(
    context: &RequestContext<'_>,
    entries: &mut [PendingBucket<'_>],
    now: Timestamp,
) -> Vec<Option<Answer>> {
    withdraw_demands(context, entries).await;
    sum_demands(context, entries).await;
    renew(context, entries).await;
    take_tokens(context, entries, now).await
}

/// Gives up the demands of the last round, where they have changed.
async fn withdraw_demands(context: &RequestContext<'_>, entries: &mut [PendingBucket<'_>]) {
    let mut steps = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        if !entry.bucket.update_demand(&entry.division) {
            continue;
        }
        for (digit, lease) in entry.bucket.demand_leases.iter_mut().enumerate() {
            if let Some(lease) = lease.take() {
                steps.push(Step::new(index, Ledger::Demand(digit), Operation::Release { lease }));
            }
        }
    }
    execute(context, entries, &steps).await;
}

/// Publishes the demands to all daemons, and reads the demand of all clients and the available units.
async fn sum_demands(context: &RequestContext<'_>, entries: &mut [PendingBucket<'_>]) {
    let mut steps = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        for (digit, cost) in digits(entry.bucket.demand).into_iter().enumerate() {
            let operation = match entry.bucket.demand_leases[digit] {
                Some(lease) => Operation::Renew { lease },
                None if cost == 0 => Operation::Peek,
                None => Operation::Acquire { lease: random_id() },
            };
            steps.push(Step { cost, ..Step::new(index, Ledger::Demand(digit), operation) });
        }
        steps.push(Step::new(index, Ledger::Rates, Operation::Peek));
        steps.push(Step::new(index, Ledger::Own, Operation::Peek));
    }
    let mut remaining = vec![[0; 2]; entries.len()];
    for (step, decision) in execute(context, entries, &steps).await {
        let entry = &mut entries[step.entry];
        match (step.policy, step.operation) {
            (Ledger::Demand(digit), operation) => {
                remaining[step.entry][digit] = decision.remaining;
                match operation {
                    Operation::Acquire { lease } if decision.allowed => {
                        entry.bucket.demand_leases[digit] = Some(lease);
                    }
                    Operation::Renew { .. } if !decision.changed => {
                        entry.bucket.demand_leases[digit] = None;
                    }
                    _ => {}
                }
            }
            (Ledger::Own, _) => entry.fixed = fixed(decision.reason),
            _ => entry.available = decision.remaining,
        }
    }
    let both = entries.iter_mut().zip(remaining);
    for (entry, remaining) in both.filter(|(entry, _)| entry.error.is_none()) {
        entry.bucket.sum = sum(remaining).max(entry.bucket.demand);
        entry.target = entry.division.share(entry.bucket.demand, entry.bucket.sum);
    }
}

/// Renews the leases of units that are needed, lets the others expire, and acquires those that are
/// missing.
async fn renew(context: &RequestContext<'_>, entries: &mut [PendingBucket<'_>]) {
    let mut steps = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        // The target of a failed entry is not known, and a fixed answer needs no units.
        if entry.error.is_some() || entry.fixed.is_some() {
            continue;
        }
        entry.bucket.shrink(entry.target);
        for (lease, _) in &entry.bucket.leases {
            steps.push(Step::new(index, Ledger::Rates, Operation::Renew { lease: *lease }));
        }
        for cost in entry.bucket.growth(&entry.division, entry.target, entry.available) {
            let operation = Operation::Acquire { lease: random_id() };
            steps.push(Step { cost, ..Step::new(index, Ledger::Rates, operation) });
        }
    }
    for (step, decision) in execute(context, entries, &steps).await {
        let leases = &mut entries[step.entry].bucket.leases;
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
    entries: &mut [PendingBucket<'_>],
    now: Timestamp,
) -> Vec<Option<Answer>> {
    let mut steps = Vec::new();
    for (index, entry) in entries.iter_mut().enumerate() {
        entry.waits = entry.bucket.waits(entry.target, now);
        if entry.waits || entry.fixed.is_some() {
            continue;
        }
        let most = entry.division.max_tokens(entry.bucket.units());
        let cost = most.saturating_sub(entry.bucket.active_tokens(now));
        if cost > 0 {
            steps.push(Step { cost, ..Step::new(index, Ledger::Starts, Operation::Take) });
        }
    }
    let mut taken = vec![0; entries.len()];
    for (step, decision) in execute(context, entries, &steps).await {
        taken[step.entry] = decision.granted;
    }
    let both = entries.iter_mut().zip(taken);
    both.map(|(entry, taken)| entry.answer(taken, now)).collect()
}

impl PendingBucket<'_> {
    /// The answer with the leases and these additional tokens, which the client now has.
    fn answer(&mut self, taken: u64, now: Timestamp) -> Option<Answer> {
        if self.error.is_some() || self.waits {
            return None;
        }
        if self.fixed.is_some() {
            self.bucket.assignment = None;
            return self.fixed;
        }
        let (units, fill) = (self.bucket.units(), self.division.fill);
        let active = self.bucket.active_tokens(now);
        let max_tokens = self.division.max_tokens(units).min(active + taken);
        let replaces = self.bucket.assignment.is_some_and(|assignment| assignment.fill != fill);
        if max_tokens == 0 {
            self.bucket.assignment = None;
            return Some(Answer::DenyAll);
        }
        self.bucket.assignment = Some(Assignment { max_tokens, fill, sent: now });
        let tokens_per_fill = self.division.refill(units);
        Some(Answer::TokenBucket(TokenBucket { max_tokens, tokens_per_fill, fill, replaces }))
    }
}

impl Step {
    const fn new(entry: usize, policy: Ledger, operation: Operation) -> Self {
        Step { entry, policy, operation, cost: 1 }
    }
}

/// The answer for a key that is blocked, or on a list of its policy.
const fn fixed(reason: Reason) -> Option<Answer> {
    match reason {
        Reason::AllowList => Some(Answer::AllowAll),
        Reason::Blocked | Reason::DenyList => Some(Answer::DenyAll),
        _ => None,
    }
}

/// Executes the steps of entries without errors, and returns the decisions. The first error of a entry
/// ends its round.
async fn execute(
    context: &RequestContext<'_>,
    entries: &mut [PendingBucket<'_>],
    steps: &[Step],
) -> Vec<(Step, Decision)> {
    let steps: Vec<_> =
        steps.iter().filter(|step| entries[step.entry].error.is_none()).copied().collect();
    let mut calls: Vec<_> = steps.iter().map(|step| call(&entries[step.entry], *step)).collect();
    let results = context.execute_each(&mut calls, DEADLINE).await;
    drop(calls);
    let mut decisions = Vec::with_capacity(steps.len());
    for (step, result) in steps.into_iter().zip(results) {
        match result {
            Ok(outcome) => decisions.push((step, decision(&outcome))),
            Err(error) => {
                entries[step.entry].error.get_or_insert(error);
            }
        }
    }
    decisions
}

fn decision(outcome: &Outcome) -> Decision {
    outcome.decision(0).clone()
}

fn call<'p>(entry: &'p PendingBucket<'_>, step: Step) -> Call<'p, 'p> {
    let policy = Cow::Borrowed(step.policy.policy(&entry.division));
    // Demands, units and tokens are far below the greatest cost.
    let cost = Cost::new(step.cost).unwrap_or(Cost::MAX);
    let check = CheckRequest::new(policy, Cow::Borrowed(&*entry.key), cost);
    Call::new(Action::Execute(step.operation), Checks::One(check))
        .with_counting(Counting::Nothing)
        .with_store_required(true)
}
