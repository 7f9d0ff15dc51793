//! Requests with several checks, decided atomically under all their locks.

use tollgate_algorithms::{
    Anomalies, Block, Check, CheckContext, Decision, KeyState, MAX_CHECKS, Operation, Policy,
    Request, Timestamp, admits_plain, check_plain, decide,
};

use super::entry::{Entry, SlotIndex};
use super::locked_shards::LockedShards;
use super::policy_counts::PolicyGroup;
use super::shard::{Shard, ShardFull};
use super::stored_key::{MAX_TEXT_LEN, StoredKey};
use super::table::{Address, Table};
use super::{MemoryStore, TableFull};
use crate::key::Key;
use crate::store::Answer;
use crate::sync::MutexGuard;

/// Most requests with several checks have at most this many, and get smaller arrays on the stack.
const FEW_CHECKS: usize = 8;

/// All checks of a request on one (policy, key), with the sum of their costs.
struct Group<'a> {
    policy: &'a Policy,
    key: StoredKey<'a>,
    cost: u64,
    /// The address of the table, see [`table_address`].
    table: usize,
    address: Address,
    /// Index of the shard's guard among the locks held.
    lock: usize,
    slot: Option<SlotIndex>,
    state: KeyState,
    block: Option<Block>,
}

impl MemoryStore {
    pub(super) fn decide_at(&self, request: &Request<'_>, now: Timestamp) -> Answer {
        // If the bytes are nearly used up, keys are evicted first, also to make room for a request id.
        let is_fast = !self.budget.is_nearly_used_up();
        match (request.operation, request.checks) {
            (Operation::Check { lease }, [check]) if is_fast => {
                let Check { policy, key, cost } = *check;
                let decision = self.check_at(now, policy, Key::from_valid(key), cost, || lease);
                Answer { decisions: vec![decision] }
            }
            (operation, [check]) => {
                let (policy, key) = (check.policy, StoredKey::new(check.key));
                let decision = self.decide_key(&operation, policy, &key, check.cost.get(), now);
                Answer { decisions: vec![decision] }
            }
            (Operation::Check { .. }, checks) if is_fast => {
                let answer = match checks.len() {
                    ..=FEW_CHECKS => self.check_known::<FEW_CHECKS>(checks, now),
                    _ => self.check_known::<MAX_CHECKS>(checks, now),
                };
                answer.unwrap_or_else(|| self.decide_grouped(request, now))
            }
            _ => self.decide_grouped(request, now),
        }
    }

    /// Decides a request with several checks of any kind.
    fn decide_grouped(&self, request: &Request<'_>, now: Timestamp) -> Answer {
        self.reclaim(&request.operation, request.checks.len(), now);
        let own_tables: Vec<_> = request
            .checks
            .iter()
            .map(|check| {
                check.policy.max_keys().map(|max| self.own_table(check.policy.name(), max))
            })
            .collect();
        let tables: Vec<&Table> =
            own_tables.iter().map(|own| own.as_deref().unwrap_or(&self.table)).collect();
        let (mut groups, group_of_check) = group(request.checks, &tables);
        let mut guards = lock_groups(&mut groups, &tables);
        let decisions = decide_together(self, &request.operation, &mut groups, &mut guards, now);
        let decide_check = |(check, group): (&Check<'_>, &usize)| {
            let mut decision = decisions[*group].clone();
            if group_of_check.iter().filter(|other| *other == group).count() > 1 {
                // Several checks share the decision: each was granted its own cost, or nothing.
                decision.granted = if decision.granted > 0 { check.cost.get() } else { 0 };
            }
            decision
        };
        let checks = request.checks.iter().zip(&group_of_check);
        Answer { decisions: checks.map(decide_check).collect() }
    }

    /// Decides several checks, at most `N`, if their policies are [plain](Policy::is_plain), and their keys known,
    /// different, short, and not blocked. Otherwise returns `None` and changes nothing.
    fn check_known<const N: usize>(&self, checks: &[Check<'_>], now: Timestamp) -> Option<Answer> {
        let is_eligible =
            |check: &Check<'_>| check.policy.is_plain() && check.key.len() <= MAX_TEXT_LEN;
        if !checks.iter().all(is_eligible) {
            return None;
        }
        // Before the shards are locked.
        let mut decisions = Vec::with_capacity(checks.len());
        let mut addresses = [Address::default(); N];
        let addresses = &mut addresses[..checks.len()];
        for (address, check) in addresses.iter_mut().zip(checks) {
            *address = self.table.address(check.policy, &StoredKey::Text(check.key));
        }
        let mut shards = LockedShards::<N>::lock_all(&self.table, addresses);
        let mut slots = [SlotIndex::default(); N];
        let mut all_admitted = true;
        for (index, Check { policy, key, cost }) in checks.iter().enumerate() {
            let (shard, address) = (shards.get(index), addresses[index]);
            let slot = shard.find_plain(address.tag, policy, &StoredKey::Text(key))?;
            let mut others = slots[..index].iter().zip(&*addresses);
            if others.any(|other| other == (&slot, &address)) {
                return None;
            }
            slots[index] = slot;
            all_admitted &= admits_plain(policy, &shard.entry(slot)?.state, cost.get(), now);
        }
        if !all_admitted && checks.iter().any(|check| check.policy.counts_denials()) {
            return None;
        }
        decisions.extend((0..checks.len()).map(|index| {
            let Check { policy, cost, .. } = checks[index];
            shards.get_mut(index).change_state(slots[index], |state, anomalies| {
                check_plain(policy, state, cost.get(), all_admitted, now, anomalies)
            })
        }));
        Some(Answer { decisions })
    }
}

/// Groups checks by (policy, key); returns also the index of each check's group.
fn group<'a>(checks: &'a [Check<'a>], tables: &[&Table]) -> (Vec<Group<'a>>, Vec<usize>) {
    let mut groups: Vec<Group<'a>> = Vec::with_capacity(checks.len());
    let mut group_of_check = Vec::with_capacity(checks.len());
    for (check, table) in checks.iter().zip(tables) {
        let key = StoredKey::new(check.key);
        let is_same =
            |group: &Group<'_>| group.key == key && group.policy.shares_name(check.policy);
        let index = groups.iter().position(is_same).unwrap_or(groups.len());
        group_of_check.push(index);
        if let Some(group) = groups.get_mut(index) {
            group.cost = group.cost.saturating_add(check.cost.get());
            continue;
        }
        groups.push(Group {
            policy: check.policy,
            key,
            cost: check.cost.get(),
            table: table_address(table),
            address: table.address(check.policy, &key),
            lock: 0,
            slot: None,
            state: KeyState::default(),
            block: None,
        });
    }
    (groups, group_of_check)
}

/// The identity of a table, and its place in the locking order: its address in memory.
fn table_address(table: &Table) -> usize {
    std::ptr::from_ref(table).addr()
}

/// Locks every shard that the groups need, once each, in one global order to prevent deadlocks.
fn lock_groups<'t>(groups: &mut [Group<'_>], tables: &[&'t Table]) -> Vec<MutexGuard<'t, Shard>> {
    let mut needed: Vec<_> =
        groups.iter().map(|group| (group.table, group.address.shard)).collect();
    needed.sort_unstable();
    needed.dedup();
    for group in groups.iter_mut() {
        let shard = (group.table, group.address.shard);
        let index = needed.iter().position(|needed| *needed == shard);
        #[expect(clippy::expect_used, reason = "needed has the shard of every group")]
        let index = index.expect("the shard of a group is locked");
        group.lock = index;
    }
    let mut guards = Vec::with_capacity(needed.len());
    for (address, shard) in needed {
        let table = tables.iter().find(|table| table_address(table) == address);
        #[expect(clippy::expect_used, reason = "the address is that of one of the tables")]
        guards.push(table.expect("every group has one of the tables").lock(shard));
    }
    guards
}

fn decide_together(
    store: &MemoryStore,
    operation: &Operation,
    groups: &mut [Group<'_>],
    guards: &mut [MutexGuard<'_, Shard>],
    now: Timestamp,
) -> Vec<Decision> {
    for group in groups.iter_mut() {
        let shard = &guards[group.lock];
        group.block = shard.blocks.get(group.policy, &group.key);
        group.slot = shard.find(group.address.tag, group.policy, &group.key);
    }
    let mut anomalies = Anomalies::default();
    let full = make_room(operation, groups, guards, now, &mut anomalies);
    let is_denied = full.iter().any(Option::is_some) && store.table_full == TableFull::Deny;
    let operation = if is_denied { &Operation::Peek } else { operation };
    let mut decided =
        decide_groups(operation, groups, guards, &full, now, &mut anomalies).into_iter();
    if let Some(shard) = guards.first_mut() {
        shard.counts.anomalies = shard.counts.anomalies.plus(anomalies);
    }
    let mut decisions = Vec::with_capacity(groups.len());
    for (group, full) in groups.iter().zip(&full) {
        decisions.push(match full {
            Some(full) => store.decide_without_room(*full, group.cost, now),
            #[expect(clippy::expect_used, reason = "a default would deny")]
            None => decided.next().expect("one decision for each group with room"),
        });
    }
    decisions
}

/// Makes room for the keys that are new, if the request would charge them; returns an error for
/// each group that gets none.
fn make_room(
    operation: &Operation,
    groups: &mut [Group<'_>],
    guards: &mut [MutexGuard<'_, Shard>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Option<ShardFull>> {
    let none = vec![None; groups.len()];
    let keep: Vec<_> =
        groups.iter().filter_map(|group| group.slot.map(|slot| (group.lock, slot))).collect();
    // The bytes of states that are not stored inline follow from the decision, so the last request
    // may exceed the bound by them.
    let has_bytes = |group: &Group<'_>| {
        let entries = if group.slot.is_none() { groups.len() } else { 0 };
        let heap = if group.slot.is_none() { group.key.bytes().len() } else { 1 };
        guards[group.lock].has_bytes(entries, heap, now)
    };
    let bytes: Vec<_> = groups.iter().map(|group| has_bytes(group).err()).collect();
    let needs_room = bytes.iter().any(Option::is_some)
        || groups
            .iter()
            .any(|group| group.slot.is_none() && !guards[group.lock].has_room(groups.len()));
    if !needs_room || *operation == Operation::Peek {
        return none;
    }
    let trial = decide_groups(&Operation::Peek, groups, guards, &none, now, anomalies);
    // A denial counts towards a ban only if the key has a state: that of what it has used.
    let counts_denied =
        |group: &Group<'_>| group.policy.limits().iter().any(|limit| limit.counts_denied());
    // A peek ignores leases: a key that holds the request's lease may deny the peek and still
    // admit.
    let may_hold_lease = match operation {
        Operation::Check { lease } => lease.is_some(),
        operation => matches!(operation, Operation::Acquire { .. }),
    };
    let is_admitted = may_hold_lease || trial.iter().all(|decision| decision.allowed);
    if !is_admitted && !groups.iter().any(counts_denied) {
        return none;
    }
    let mut reserved = vec![0; guards.len()];
    let mut make_room_for = |(group, bytes): (&Group<'_>, &Option<ShardFull>)| {
        if group.slot.is_some() || bytes.is_some() {
            return *bytes;
        }
        let keep: Vec<_> =
            keep.iter().filter(|(lock, _)| *lock == group.lock).map(|(_, slot)| *slot).collect();
        let result = guards[group.lock].make_room_for(
            reserved[group.lock] + 1,
            PolicyGroup::new(group.policy),
            now,
            &keep,
        );
        reserved[group.lock] += usize::from(result.is_ok());
        result.err()
    };
    groups.iter().zip(&bytes).map(&mut make_room_for).collect()
}

/// Decides the groups that have room, on their own states.
fn decide_groups(
    operation: &Operation,
    groups: &mut [Group<'_>],
    guards: &mut [MutexGuard<'_, Shard>],
    full: &[Option<ShardFull>],
    now: Timestamp,
    anomalies: &mut Anomalies,
) -> Vec<Decision> {
    for group in groups.iter_mut() {
        if let Some(slot) = group.slot {
            group.state = guards[group.lock].take_state(slot);
        }
    }
    let mut contexts: Vec<_> = groups
        .iter_mut()
        .zip(full)
        .filter(|(_, full)| full.is_none())
        .map(|(group, _)| CheckContext {
            policy: group.policy,
            state: &mut group.state,
            block: &mut group.block,
            cost: group.cost,
        })
        .collect();
    let decisions = decide(operation, &mut contexts, now, anomalies);
    drop(contexts);
    for group in groups.iter_mut() {
        store_state(group, &mut guards[group.lock], now);
    }
    decisions
}

/// Moves the state of a group back to its shard.
fn store_state(group: &mut Group<'_>, shard: &mut Shard, now: Timestamp) {
    let state = std::mem::take(&mut group.state);
    match group.slot {
        Some(slot) => {
            shard.put_state(slot, state);
            shard.policies.note_refund();
        }
        None if state.is_untouched(now) => {}
        None => {
            shard.insert(Entry::new(group.address.tag, &group.key, state));
        }
    }
}
