//! Eviction from a full shard.
//!
//! The entries of a shard form a ring. A search continues where the previous one ended, until it has
//! seen [`SAMPLE`] candidates or the whole ring, and selects the candidate with the least used share
//! of its limits; among equals, the soonest to recover. So the entry with the greatest share among
//! any [`SAMPLE`] successive candidates is never selected, and a flood of new keys, which have used
//! little, evicts itself. An entry that has recovered is selected at once.
//!
//! Each policy is entitled to an equal share of the entries. Candidates are entries that admit a
//! request, hold no leases and are not banned: those of policies above their share, and if the policy that needs room
//! has its share, its own. If a policy has not got its share and there is no candidate, it displaces
//! the entry of a policy above its share that admits a request soonest. Leases and
//! bans are never evicted.
//!
//! If the memory of entries is needed, candidates are the entries of all policies.

use tollgate_algorithms::{Retention, Timestamp};

use super::entry::SlotIndex;
use super::policy_counts::PolicyGroup;
use super::shard::{Shard, ShardFull, slot_of};

/// The number of candidates of an eviction.
const SAMPLE: usize = 8;

/// An entry that can be evicted, if there is none with a lesser value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    /// Its used share, and when it recovers.
    Candidate(u64, u64, SlotIndex),
    /// A denying entry of a policy above its share, and when it admits a request.
    Displaceable(u64, SlotIndex),
    /// An entry of a policy that has not got its share: its used share.
    BelowShare(u64, SlotIndex),
}

impl Victim {
    const fn slot(self) -> SlotIndex {
        match self {
            Victim::Candidate(_, _, slot)
            | Victim::Displaceable(_, slot)
            | Victim::BelowShare(_, slot) => slot,
        }
    }
}

/// The policy that needs room, and its share; or that memory is needed.
#[derive(Clone, Copy, Debug)]
struct Newcomer {
    group: Option<PolicyGroup>,
    share: usize,
    is_below_share: bool,
}

/// What a search has found so far.
#[derive(Debug, Default)]
struct Search {
    victim: Option<Victim>,
    candidates: usize,
    /// When the next entry becomes a candidate.
    retry_at: Option<u64>,
}

impl Search {
    fn add(&mut self, victim: Victim) {
        self.candidates += usize::from(matches!(victim, Victim::Candidate(..)));
        self.victim = Some(self.victim.map_or(victim, |other| other.min(victim)));
    }

    fn add_time(&mut self, evictable_at: u64) {
        self.retry_at = Some(self.retry_at.map_or(evictable_at, |other| other.min(evictable_at)));
    }
}

impl Shard {
    /// Selects the entry to evict for a new key of a policy, or without one, for its memory, among
    /// all policies; `keep` are not selected.
    pub(super) fn victim(
        &mut self,
        group: Option<PolicyGroup>,
        now: Timestamp,
        keep: &[SlotIndex],
    ) -> Result<SlotIndex, ShardFull> {
        if let Some(retry_at) = self.policies.no_victim_until(group, now) {
            return Err(ShardFull { retry_at: Some(retry_at) });
        }
        let share = group.map_or(0, |group| self.policies.share(group));
        let is_below_share = group.is_some_and(|group| self.policies.count(group) < share);
        let newcomer = Newcomer { group, share, is_below_share };
        let mut search = Search::default();
        for _ in 0..self.slots.len() {
            self.hand = if self.hand + 1 < self.slots.len() { self.hand + 1 } else { 0 };
            let slot = slot_of(self.hand);
            let Some(entry) = self.slots.get(self.hand) else { continue };
            if keep.contains(&slot) {
                continue;
            }
            let retention = entry.state.retention(now);
            if retention.recovers_at <= now.as_micros() {
                return Ok(slot);
            }
            self.consider(&mut search, &newcomer, slot, &retention, now);
            if search.candidates == SAMPLE {
                break;
            }
        }
        let Search { victim, retry_at, .. } = search;
        victim.map(Victim::slot).ok_or_else(|| {
            self.policies.note_no_victim(group, retry_at);
            ShardFull { retry_at }
        })
    }

    /// Adds an entry to a search if it can be evicted.
    fn consider(
        &self,
        search: &mut Search,
        newcomer: &Newcomer,
        slot: SlotIndex,
        retention: &Retention,
        now: Timestamp,
    ) {
        let Some(entry) = self.entry(slot) else { return };
        let group = PolicyGroup::from_state(&entry.state);
        let is_above_share = self.policies.count(group) > newcomer.share;
        if newcomer.group != Some(group) && !is_above_share {
            return;
        }
        let &Retention { used_share, recovers_at, admits_at, is_pinned, .. } = retention;
        let evictable_at = if is_pinned { recovers_at } else { admits_at };
        if evictable_at <= now.as_micros() {
            let is_reserved = !is_above_share && newcomer.is_below_share;
            search.add(match is_reserved {
                true => Victim::BelowShare(used_share, slot),
                false => Victim::Candidate(used_share, recovers_at, slot),
            });
            return;
        }
        search.add_time(evictable_at);
        if is_above_share && newcomer.is_below_share && !is_pinned {
            search.add(Victim::Displaceable(admits_at, slot));
        }
    }
}
