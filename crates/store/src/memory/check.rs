//! The straight path: one verb on one key, under one lock.

use tollgate_core::{
    Cost, Decision, Id, Inspection, KeyState, Operation, Policy, Slot, Timestamp, check_plain,
    decide_one, inspect,
};

use super::MemoryStore;
use super::entry::Entry;
use super::shard::{Place, Shard};
use super::table::{Address, Table};
use crate::key::Key;

impl MemoryStore {
    /// Decides and charges one check, at once. `lease` is asked for an id only if the policy has a
    /// concurrent limit.
    #[inline]
    pub fn check(
        &self,
        policy: &Policy,
        key: Key<'_>,
        cost: Cost,
        lease: impl FnOnce() -> Id,
    ) -> Decision {
        if !policy.is_plain() {
            let lease = policy.has_concurrent().then(lease);
            return self.check_any(policy, key.as_bytes(), cost, lease);
        }
        let now = self.clock.now();
        let address = self.table.address(policy, key.as_bytes());
        let mut shard = self.table.lock(address.shard);
        if let Some((state, seen)) = shard.plain_mut(address.tag, policy, key.as_bytes()) {
            // Nothing is done after this, so that the decision is written where it is wanted.
            return check_plain(policy, state, cost.get(), now, seen);
        }
        drop(shard);
        self.check_any(policy, key.as_bytes(), cost, None)
    }

    #[inline(never)]
    fn check_any(&self, policy: &Policy, key: &[u8], cost: Cost, lease: Option<Id>) -> Decision {
        let now = self.clock.now();
        self.decide_key(&Operation::Check { lease }, policy, key, cost.get(), now)
    }

    /// Looks at a key: what each limit holds of it, and how long that lasts.
    #[must_use]
    pub fn inspect(&self, policy: &Policy, key: Key<'_>) -> Inspection {
        let (key, now) = (key.as_bytes(), self.clock.now());
        self.with_table(policy, |table| {
            let address = table.address(policy, key);
            let mut shard = table.lock(address.shard);
            let mut block = shard.blocks.get(policy, key);
            let mut unknown = KeyState::default();
            let place = shard.find(address.tag, policy, key);
            let state = place.and_then(|place| shard.state_mut(place)).unwrap_or(&mut unknown);
            inspect(&Slot { policy, state, block: &mut block, cost: 0 }, now)
        })
    }

    /// Decides a verb on one key.
    pub(super) fn decide_key(
        &self,
        verb: &Operation,
        policy: &Policy,
        key: &[u8],
        cost: u64,
        now: Timestamp,
    ) -> Decision {
        let asked = Asked { verb, policy, key, cost, now };
        if policy.max_keys().is_none() {
            return self.decide_in(&self.table, &asked);
        }
        self.with_table(policy, |table| self.decide_in(table, &asked))
    }

    fn decide_in(&self, table: &Table, asked: &Asked<'_>) -> Decision {
        let &Asked { policy, key, cost, now, .. } = asked;
        let address = table.address(policy, key);
        let mut shard = table.lock(address.shard);
        let Some(place) = shard.find(address.tag, policy, key) else {
            let decided = asked.of_new(&mut shard, address);
            return decided.unwrap_or_else(|retry_at| self.no_room(retry_at, cost, now));
        };
        asked.of_known(&mut shard, place)
    }
}

/// A verb on one key, at a time.
struct Asked<'a> {
    verb: &'a Operation,
    policy: &'a Policy,
    key: &'a [u8],
    cost: u64,
    now: Timestamp,
}

impl Asked<'_> {
    fn decide(&self, shard: &mut Shard, state: &mut KeyState) -> Decision {
        let known = shard.blocks.get(self.policy, self.key);
        let mut block = known;
        let mut slot = Slot { policy: self.policy, state, block: &mut block, cost: self.cost };
        let decision = decide_one(self.verb, &mut slot, self.now, &mut shard.counts.effects);
        if block != known {
            shard.blocks.set(self.policy.name(), self.key, block);
        }
        decision
    }

    fn of_known(&self, shard: &mut Shard, place: Place) -> Decision {
        let Some(state) = shard.state_mut(place) else { return Decision::default() };
        let mut state = std::mem::take(state);
        let decision = self.decide(shard, &mut state);
        if let Some(kept) = shard.state_mut(place) {
            *kept = state;
        }
        if !matches!(self.verb, Operation::Check { .. } | Operation::Peek) {
            settle_down(shard, place, self.now);
        }
        decision
    }

    /// Decides for a key that is not in the table, and adds it if anything was charged.
    fn of_new(&self, shard: &mut Shard, address: Address) -> Result<Decision, Option<u64>> {
        let mut state = KeyState::default();
        let decision = self.decide(shard, &mut state);
        if !state.is_untouched(self.now) {
            shard.make_room(self.now, &[]).map_err(|error| error.retry_at)?;
            shard.insert(Entry::new(address.tag, self.key, state), self.now);
        }
        Ok(decision)
    }
}

/// After a verb that may have given something back: a key that nothing is known of any more
/// leaves, another may recover sooner than its place in the queue says.
fn settle_down(shard: &mut Shard, place: Place, now: Timestamp) {
    let untouched = shard.entry(place).is_some_and(|x| x.state.is_untouched(now));
    if untouched { shard.remove(place) } else { shard.eased(place, now) }
}
