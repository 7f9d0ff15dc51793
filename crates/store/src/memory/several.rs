//! Requests of any verb and any number of checks, decided together under all their locks.

use tollgate_core::{
    Block, Check, Decision, Effects, KeyState, Operation, Policy, Request, Slot, Timestamp, decide,
};

use super::entry::Entry;
use super::shard::{Full, Place, Shard};
use super::table::{Address, Table};
use super::{MemoryStore, TableFull};
use crate::store::Answer;
use crate::sync::MutexGuard;

/// All checks of a request on one (policy, key), as one of their summed cost.
struct Group<'a> {
    policy: &'a Policy,
    key: &'a [u8],
    cost: u64,
    table: usize,
    address: Address,
    /// Which of the locks that are held is its shard's.
    lock: usize,
    place: Option<Place>,
    state: KeyState,
    block: Option<Block>,
}

impl MemoryStore {
    pub(super) fn decide_at(&self, request: &Request<'_>, now: Timestamp) -> Answer {
        if let [check] = request.checks {
            let (policy, key) = (check.policy, check.key);
            let decision = self.decide_key(&request.verb, policy, key, check.cost.get(), now);
            return Answer { decisions: vec![decision] };
        }
        let own: Vec<_> = request
            .checks
            .iter()
            .map(|check| {
                check.policy.max_keys().map(|most| self.own_table(check.policy.name(), most))
            })
            .collect();
        let tables: Vec<&Table> = own.iter().map(|x| x.as_deref().unwrap_or(&self.table)).collect();
        let (mut groups, of_check) = group(request.checks, &tables);
        let mut held = lock_all(&mut groups, &tables);
        let decisions = decide_together(self, &request.verb, &mut groups, &mut held, now);
        let answer = |(check, group): (&Check<'_>, &usize)| {
            let mut decision = decisions[*group].clone();
            if of_check.iter().filter(|check| *check == group).count() > 1 {
                // One decision for several checks: each was granted its own cost, or nothing.
                decision.granted = if decision.granted > 0 { check.cost.get() } else { 0 };
            }
            decision
        };
        Answer { decisions: request.checks.iter().zip(&of_check).map(answer).collect() }
    }
}

/// One group for each (policy, key), and which of them each check belongs to.
fn group<'a>(checks: &'a [Check<'a>], tables: &[&Table]) -> (Vec<Group<'a>>, Vec<usize>) {
    let mut groups: Vec<Group<'a>> = Vec::with_capacity(checks.len());
    let mut of_check = Vec::with_capacity(checks.len());
    for (check, table) in checks.iter().zip(tables) {
        let same =
            |group: &Group<'_>| group.key == check.key && group.policy.shares_name(check.policy);
        let found = groups.iter().position(same).unwrap_or(groups.len());
        of_check.push(found);
        if let Some(group) = groups.get_mut(found) {
            group.cost = group.cost.saturating_add(check.cost.get());
            continue;
        }
        groups.push(Group {
            policy: check.policy,
            key: check.key,
            cost: check.cost.get(),
            table: address_of(table),
            address: table.address(check.policy, check.key),
            lock: 0,
            place: None,
            state: KeyState::default(),
            block: None,
        });
    }
    (groups, of_check)
}

/// Tables are told apart, and locked in order, by where they are.
fn address_of(table: &Table) -> usize {
    std::ptr::from_ref(table).addr()
}

/// Locks every shard that is needed, each once, in one order for all: nobody waits in a circle.
fn lock_all<'t>(groups: &mut [Group<'_>], tables: &[&'t Table]) -> Vec<MutexGuard<'t, Shard>> {
    let mut needed: Vec<_> =
        groups.iter().map(|group| (group.table, group.address.shard)).collect();
    needed.sort_unstable();
    needed.dedup();
    for group in groups.iter_mut() {
        group.lock = needed.binary_search(&(group.table, group.address.shard)).unwrap_or(0);
    }
    let table = |at: usize| tables.iter().find(|table| address_of(table) == at);
    needed.iter().filter_map(|(at, shard)| table(*at).map(|x| x.lock(*shard))).collect()
}

fn decide_together(
    store: &MemoryStore,
    verb: &Operation,
    groups: &mut [Group<'_>],
    held: &mut [MutexGuard<'_, Shard>],
    now: Timestamp,
) -> Vec<Decision> {
    for group in groups.iter_mut() {
        let shard = &held[group.lock];
        group.block = shard.blocks.get(group.policy, group.key);
        group.place = shard.find(group.address.tag, group.policy, group.key);
    }
    let mut seen = Effects::default();
    let full = make_room(verb, groups, held, now, &mut seen);
    let denied = full.iter().any(Option::is_some) && store.table_full == TableFull::Deny;
    let verb = if denied { &Operation::Peek } else { verb };
    let mut decided = decide_slots(verb, groups, held, &full, now, &mut seen).into_iter();
    if let Some(shard) = held.first_mut() {
        shard.counts.effects = shard.counts.effects.plus(seen);
    }
    let answer = |(group, full): (&Group<'_>, &Option<Full>)| match full {
        Some(full) => store.no_room(full.retry_at, group.cost, now),
        None => decided.next().unwrap_or_default(),
    };
    groups.iter().zip(&full).map(answer).collect()
}

/// Makes room for the keys that are new, if the request would charge them; says for which there
/// is none.
fn make_room(
    verb: &Operation,
    groups: &mut [Group<'_>],
    held: &mut [MutexGuard<'_, Shard>],
    now: Timestamp,
    seen: &mut Effects,
) -> Vec<Option<Full>> {
    let none = vec![None; groups.len()];
    let keep: Vec<_> =
        groups.iter().filter_map(|group| group.place.map(|at| (group.lock, at))).collect();
    let wants_room = groups
        .iter()
        .any(|group| group.place.is_none() && !held[group.lock].has_room(groups.len()));
    if !wants_room || *verb == Operation::Peek {
        return none;
    }
    let trial = decide_slots(&Operation::Peek, groups, held, &none, now, seen);
    let counts_denied =
        |group: &Group<'_>| group.policy.limits().iter().any(|limit| limit.counts_denied());
    // A peek knows no leases: where a key holds the one that is asked for, the rest may be admitted.
    let may_hold = match verb {
        Operation::Check { lease } => lease.is_some(),
        verb => matches!(verb, Operation::Acquire { .. }),
    };
    let admitted = may_hold || trial.iter().all(|trial| trial.allowed);
    if !admitted && !groups.iter().any(counts_denied) {
        return none;
    }
    let mut reserved = vec![0; held.len()];
    let mut room = |group: &Group<'_>| {
        if group.place.is_some() {
            return None;
        }
        let kept: Vec<_> =
            keep.iter().filter(|keep| keep.0 == group.lock).map(|keep| keep.1).collect();
        let made = held[group.lock].make_room_for(reserved[group.lock] + 1, now, &kept);
        reserved[group.lock] += usize::from(made.is_ok());
        made.err()
    };
    groups.iter().map(&mut room).collect()
}

/// Decides the groups that have room, on their own states.
fn decide_slots(
    verb: &Operation,
    groups: &mut [Group<'_>],
    held: &mut [MutexGuard<'_, Shard>],
    full: &[Option<Full>],
    now: Timestamp,
    seen: &mut Effects,
) -> Vec<Decision> {
    for group in groups.iter_mut() {
        if let Some(state) = group.place.and_then(|place| held[group.lock].state_mut(place)) {
            group.state = std::mem::take(state);
        }
    }
    let mut slots: Vec<_> = groups
        .iter_mut()
        .zip(full)
        .filter(|(_, full)| full.is_none())
        .map(|(group, _)| Slot {
            policy: group.policy,
            state: &mut group.state,
            block: &mut group.block,
            cost: group.cost,
        })
        .collect();
    let decisions = decide(verb, &mut slots, now, seen);
    drop(slots);
    for group in groups.iter_mut() {
        put_back(group, &mut held[group.lock], now);
    }
    decisions
}

fn put_back(group: &mut Group<'_>, shard: &mut Shard, now: Timestamp) {
    let state = std::mem::take(&mut group.state);
    match group.place {
        Some(place) => {
            if let Some(kept) = shard.state_mut(place) {
                *kept = state;
            }
            shard.eased(place, now);
        }
        None if state.is_untouched(now) => {}
        None => {
            shard.insert(Entry::new(group.address.tag, group.key, state), now);
        }
    }
}
