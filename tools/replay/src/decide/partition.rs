//! Some of the keys with their states and counts; each thread owns one partition.

use foldhash::HashMap;
use tollgate::{Listed, Operation, Policy, Timestamp};
use tollgate_core::{Anomalies, CheckContext, KeyState, check_single_limit, decide_one};

use super::keys::Keys;
use super::tally::Tally;
use crate::candidate::Candidate;
use crate::convert::{index, to_u32};
use crate::report::{Amount, Bins, RequestOutcome};

/// A check of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// The number of the partition.
    pub(crate) partition: u32,
    /// The number of the key in its partition.
    pub(crate) key: u32,
    pub(crate) cost: u64,
}

/// Some of the keys.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) keys: Keys,
    pub(crate) tallies: Vec<Tally>,
    pub(crate) columns: Vec<Column>,
    pub(crate) bins: Bins,
    pub(crate) offered: Amount,
    /// All checks in order, if they are needed again for suggestions.
    pub(crate) trace: Option<Vec<(u64, u32, u64)>>,
    /// Checks without a number, because there are too many keys.
    pub(crate) rejected: u64,
}

/// The state of one candidate.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) states: Vec<KeyState>,
    /// The policy of each key, if the candidate has one per key.
    policies: Vec<Option<Policy>>,
    /// The keys on a list of their policy.
    listed: HashMap<u32, Listed>,
    /// The keys that were denied at least once.
    pub(crate) denials: HashMap<u32, Denials>,
    pub(crate) admitted: Amount,
    pub(crate) denied: Amount,
    /// All decisions, until there are too many.
    pub(crate) decisions: Option<Vec<RequestOutcome>>,
}

/// How many decisions are kept for pictures.
pub(crate) const MAX_DECISIONS: usize = 20_000;

/// How often and how long a key was denied.
#[derive(Clone, Debug)]
pub(crate) struct Denials {
    pub(crate) amount: Amount,
    /// The time of the first denial.
    pub(crate) first: u64,
    /// The start of the current series of denials.
    start: Option<u64>,
    /// The time of the last denial.
    last: u64,
    /// The start and the length of the longest series of denials.
    pub(crate) longest: (u64, u64),
}

impl Denials {
    fn new(at: u64) -> Self {
        let amount = Amount::default();
        Denials { amount, first: at, start: None, last: at, longest: (at, 0) }
    }

    /// Ends the current series at `at`.
    pub(crate) fn end(&mut self, at: u64) {
        if let Some(start) = self.start.take() {
            let length = at - start;
            if length > self.longest.1 {
                self.longest = (start, length);
            }
        }
    }

    /// Ends the current series with the last denial.
    pub(crate) fn end_with_last(&mut self) {
        self.end(self.last);
    }
}

impl Partition {
    pub(crate) fn new(candidates: usize, keeps_trace: bool) -> Self {
        let column = || Column {
            states: Vec::new(),
            policies: Vec::new(),
            listed: HashMap::default(),
            denials: HashMap::default(),
            admitted: Amount::default(),
            denied: Amount::default(),
            decisions: Some(Vec::new()),
        };
        Partition {
            keys: Keys::default(),
            tallies: Vec::new(),
            columns: std::iter::repeat_with(column).take(candidates).collect(),
            bins: Bins::new(candidates + 1),
            offered: Amount::default(),
            trace: keeps_trace.then(Vec::new),
            rejected: 0,
        }
    }

    /// The number of a key of a policy; `None` if there are too many keys.
    pub(crate) fn number(
        &mut self,
        hash: u64,
        policy: u32,
        key: &[u8],
        candidates: &[Candidate],
    ) -> Option<u32> {
        // The upper half of the hash selects the partition, the lower half identifies the key.
        let half = to_u32(hash & u64::from(u32::MAX));
        let Some((number, is_new)) = self.keys.number(half, policy, key) else {
            self.rejected += 1;
            return None;
        };
        if is_new {
            self.tallies.push(Tally::default());
            for (column, candidate) in self.columns.iter_mut().zip(candidates) {
                column.states.push(KeyState::default());
                let policy = candidate.policy(policy, key);
                if let Some(listed) = policy.as_ref().and_then(|policy| policy.listed(key)) {
                    column.listed.insert(number, listed);
                }
                if candidate.fixed_policy().is_none() {
                    column.policies.push(policy);
                }
            }
        }
        Some(number)
    }

    /// Decides those of the events that belong to this partition.
    pub(crate) fn decide(
        &mut self,
        mine: u32,
        events: &[(Timestamp, Event)],
        candidates: &[Candidate],
    ) {
        for (at, event) in events {
            if event.partition == mine {
                self.decide_one(at.as_micros(), event, candidates);
            }
        }
    }

    fn decide_one(&mut self, at: u64, event: &Event, candidates: &[Candidate]) {
        let key = index(event.key);
        self.offer_request(at, event.cost);
        self.offer_key(at, event.key, event.cost);
        for (place, candidate) in candidates.iter().enumerate() {
            let column = &mut self.columns[place];
            let granted = match candidate.fixed_policy() {
                Some(policy) => column.check(policy, event, key, at),
                None => column.check_own_policy(event, key, at),
            };
            self.count_request(at, place, event.cost, granted);
            self.count_key(at, place, event.key, event.cost, granted);
        }
    }

    /// Counts an offered request.
    pub(crate) fn offer_request(&mut self, at: u64, cost: u64) {
        self.offered.add(cost);
        let sum = &mut self.bins.at(at)[0];
        *sum = sum.saturating_add(cost);
    }

    /// Counts an offered check of a key.
    pub(crate) fn offer_key(&mut self, at: u64, key: u32, cost: u64) {
        self.tallies[index(key)].add(at, cost);
        if let Some(trace) = &mut self.trace {
            trace.push((at, key, cost));
        }
    }

    /// Counts the decision of a candidate on a request; `granted` is `None` for a denial.
    pub(crate) fn count_request(&mut self, at: u64, place: usize, cost: u64, granted: Option<u64>) {
        let column = &mut self.columns[place];
        match granted {
            Some(granted) => {
                column.admitted.add(granted);
                let sum = &mut self.bins.at(at)[place + 1];
                *sum = sum.saturating_add(granted);
            }
            None => column.denied.add(cost),
        }
        if let Some(kept) = &mut column.decisions {
            let time = Timestamp::from_micros(at);
            kept.push(RequestOutcome { time, is_admitted: granted.is_some(), cost });
            if kept.len() > MAX_DECISIONS {
                column.decisions = None;
            }
        }
    }

    /// Counts the decision of a candidate on the check of a key.
    pub(crate) fn count_key(
        &mut self,
        at: u64,
        place: usize,
        key: u32,
        cost: u64,
        granted: Option<u64>,
    ) {
        let (column, tally) = (&mut self.columns[place], &mut self.tallies[index(key)]);
        let mask = 1 << place;
        let was_denied = tally.denying & mask != 0;
        match granted {
            Some(_) if was_denied => {
                tally.denying &= !mask;
                if let Some(denials) = column.denials.get_mut(&key) {
                    denials.end(at);
                }
            }
            Some(_) => {}
            None => {
                tally.denying |= mask;
                let denials = column.denials.entry(key).or_insert_with(|| Denials::new(at));
                denials.amount.add(cost);
                denials.start.get_or_insert(at);
                denials.last = at;
            }
        }
    }
}

impl Column {
    /// Checks an event under the key's own policy; returns the granted cost if it is admitted.
    fn check_own_policy(&mut self, event: &Event, key: usize, at: u64) -> Option<u64> {
        // Without a policy nothing is granted.
        let policy = self.policies[key].clone()?;
        self.check(&policy, event, key, at)
    }

    /// Checks an event; returns the granted cost if it is admitted.
    fn check(&mut self, policy: &Policy, event: &Event, key: usize, at: u64) -> Option<u64> {
        if !self.listed.is_empty() {
            match self.listed.get(&event.key) {
                Some(Listed::Allow) => return Some(event.cost),
                Some(Listed::Deny) => return None,
                None => {}
            }
        }
        let state = &mut self.states[key];
        admits(policy, state, event.cost, at).then_some(event.cost)
    }
}

/// Charges a check if it is admitted; returns whether it is.
pub(crate) fn admits(policy: &Policy, state: &mut KeyState, cost: u64, at: u64) -> bool {
    let (now, mut anomalies) = (Timestamp::from_micros(at), Anomalies::default());
    if policy.is_single_limit() && state.is_single_limit_of(policy) {
        return check_single_limit(policy, state, cost, now, &mut anomalies).allowed;
    }
    let mut check = CheckContext { policy, state, block: &mut None, cost };
    decide_one(&Operation::Check { lease: None }, &mut check, now, &mut anomalies).allowed
}
