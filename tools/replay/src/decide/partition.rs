//! Some of the keys, with all that is known of them: what each thread decides by itself.

use foldhash::HashMap;
use tollgate::{Listed, Operation, Policy, Timestamp};
use tollgate_core::{Anomalies, CheckContext, KeyState, check_single_limit, decide_one};

use super::Alternative;
use super::keys::Keys;
use super::tally::Tally;
use crate::report::{Amount, Bins, Decided};

/// One request of one key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    /// Which partition's.
    pub(crate) partition: u32,
    /// Which of its keys.
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
    /// All events in order, if they are needed once more.
    pub(crate) trace: Option<Vec<(u64, u32, u64)>>,
    /// What has no place: there are more keys than can be counted.
    pub(crate) lost: u64,
}

/// What one alternative did with them.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) states: Vec<KeyState>,
    /// The policy of each key, where it is not the same for all.
    policies: Vec<Option<Policy>>,
    /// The keys that are on a list of their policy.
    listed: HashMap<u32, Listed>,
    /// The keys that were denied at least once.
    pub(crate) denials: HashMap<u32, Denials>,
    pub(crate) admitted: Amount,
    pub(crate) denied: Amount,
    /// All decisions, as long as they are few.
    pub(crate) decisions: Option<Vec<Decided>>,
}

/// The most decisions that are kept one by one: more than a picture has room for.
pub(crate) const MAX_DECISIONS: usize = 20_000;

/// How often a key was denied, and for how long.
#[derive(Clone, Debug)]
pub(crate) struct Denials {
    pub(crate) amount: Amount,
    /// When first.
    pub(crate) first: u64,
    /// When the denials began that go on.
    start: Option<u64>,
    /// When last.
    last: u64,
    /// The longest that went on: when it began, and for how long.
    pub(crate) longest: (u64, u64),
}

impl Denials {
    fn new(at: u64) -> Self {
        let amount = Amount::default();
        Denials { amount, first: at, start: None, last: at, longest: (at, 0) }
    }

    /// What goes on ends at this moment.
    pub(crate) fn end(&mut self, at: u64) {
        if let Some(start) = self.start.take() {
            let length = at - start;
            if length > self.longest.1 {
                self.longest = (start, length);
            }
        }
    }

    /// What goes on ends with the last denial.
    pub(crate) fn end_with_last(&mut self) {
        self.end(self.last);
    }
}

impl Partition {
    pub(crate) fn new(alternatives: usize, keeps_trace: bool) -> Self {
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
            columns: std::iter::repeat_with(column).take(alternatives).collect(),
            bins: Bins::new(alternatives + 1),
            offered: Amount::default(),
            trace: keeps_trace.then(Vec::new),
            lost: 0,
        }
    }

    /// The number of a key of a policy.
    pub(crate) fn number(
        &mut self,
        hash: u64,
        policy: u32,
        key: &[u8],
        alternatives: &[Alternative],
    ) -> Option<u32> {
        // The upper half chose the partition; what is left spreads over it.
        let half = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
        let Some((number, is_new)) = self.keys.number(half, policy, key) else {
            self.lost += 1;
            return None;
        };
        if is_new {
            self.tallies.push(Tally::default());
            for (column, alternative) in self.columns.iter_mut().zip(alternatives) {
                column.states.push(KeyState::default());
                let policy = alternative.policy(policy, key);
                if let Some(listed) = policy.as_ref().and_then(|policy| policy.listed(key)) {
                    column.listed.insert(number, listed);
                }
                if alternative.only().is_none() {
                    column.policies.push(policy);
                }
            }
        }
        Some(number)
    }

    /// Decides those of the events that are this partition's.
    pub(crate) fn decide(
        &mut self,
        mine: u32,
        events: &[(Timestamp, Event)],
        alternatives: &[Alternative],
    ) {
        for (at, event) in events {
            if event.partition == mine {
                self.decide_one(at.as_micros(), event, alternatives);
            }
        }
    }

    fn decide_one(&mut self, at: u64, event: &Event, alternatives: &[Alternative]) {
        let Some(index) = usize::try_from(event.key).ok().filter(|x| *x < self.tallies.len())
        else {
            return;
        };
        self.offer_request(at, event.cost);
        self.offer_key(at, event.key, event.cost);
        for (place, alternative) in alternatives.iter().enumerate() {
            let Some(column) = self.columns.get_mut(place) else { continue };
            let granted = match alternative.only() {
                Some(policy) => column.ask(policy, event, index, at),
                None => column.ask_chosen(event, index, at),
            };
            self.count_request(at, place, event.cost, granted);
            self.count_key(at, place, event.key, event.cost, granted);
        }
    }

    /// Counts what a request asks.
    pub(crate) fn offer_request(&mut self, at: u64, cost: u64) {
        self.offered.add(cost);
        if let Some(sum) = self.bins.at(at).first_mut() {
            *sum = sum.saturating_add(cost);
        }
    }

    /// Counts what is asked of a key.
    pub(crate) fn offer_key(&mut self, at: u64, key: u32, cost: u64) {
        if let Some(tally) = usize::try_from(key).ok().and_then(|x| self.tallies.get_mut(x)) {
            tally.add(at, cost);
        }
        if let Some(trace) = &mut self.trace {
            trace.push((at, key, cost));
        }
    }

    /// Counts what an alternative answered to a request: how much it granted, if it admits.
    pub(crate) fn count_request(&mut self, at: u64, place: usize, cost: u64, granted: Option<u64>) {
        let Some(column) = self.columns.get_mut(place) else { return };
        match granted {
            Some(granted) => {
                column.admitted.add(granted);
                if let Some(sum) = self.bins.at(at).get_mut(place + 1) {
                    *sum = sum.saturating_add(granted);
                }
            }
            None => column.denied.add(cost),
        }
        if let Some(kept) = &mut column.decisions {
            let time = Timestamp::from_micros(at);
            kept.push(Decided { time, is_admitted: granted.is_some(), cost });
            if kept.len() > MAX_DECISIONS {
                column.decisions = None;
            }
        }
    }

    /// Counts what an alternative answered to the check of a key.
    pub(crate) fn count_key(
        &mut self,
        at: u64,
        place: usize,
        key: u32,
        cost: u64,
        granted: Option<u64>,
    ) {
        let tally = usize::try_from(key).ok().and_then(|x| self.tallies.get_mut(x));
        let (Some(column), Some(tally)) = (self.columns.get_mut(place), tally) else { return };
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
    /// How much is granted, if it is admitted, under the key's own policy.
    fn ask_chosen(&mut self, event: &Event, index: usize, at: u64) -> Option<u64> {
        let policy = self.policies.get(index)?.clone()?;
        self.ask(&policy, event, index, at)
    }

    /// How much is granted, if it is admitted.
    fn ask(&mut self, policy: &Policy, event: &Event, index: usize, at: u64) -> Option<u64> {
        if !self.listed.is_empty() {
            match self.listed.get(&event.key) {
                Some(Listed::Allow) => return Some(event.cost),
                Some(Listed::Deny) => return None,
                None => {}
            }
        }
        let state = self.states.get_mut(index)?;
        admits(policy, state, event.cost, at).then_some(event.cost)
    }
}

/// Whether a check is admitted, and charges it if so.
pub(crate) fn admits(policy: &Policy, state: &mut KeyState, cost: u64, at: u64) -> bool {
    let (now, mut seen) = (Timestamp::from_micros(at), Anomalies::default());
    if policy.is_single_limit() && state.is_single_limit_of(policy) {
        return check_single_limit(policy, state, cost, now, &mut seen).allowed;
    }
    let mut slot = CheckContext { policy, state, block: &mut None, cost };
    decide_one(&Operation::Check { lease: None }, &mut slot, now, &mut seen).allowed
}
