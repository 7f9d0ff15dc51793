//! The processes that share the store, and this process among them.
//!
//! While the store is unavailable, each process decides with its share of a limit. The shares add up to
//! the limit, because every process divides it by the processes that it knows:
//!
//! - A process that has started counts itself, and is counted, but has no share until all others
//!   must have read its heartbeat.
//! - A process whose heartbeats stop is counted for [`TIMEOUT`], and then no longer.
//! - While the store is unavailable, the last known processes count.
//!
//! A process that is cut off from the store alone keeps its share, while the others still decide with
//! the store: together they may admit the limit plus that share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tollgate_algorithms::Id;
use tollgate_redis::RedisStore;
use tollgate_state::{Failure, FailureKind};

/// The interval between heartbeats.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a heartbeat may take.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_millis(500);
/// A store that takes longer to answer a heartbeat, and longer than decisions may take, is so slow that
/// other processes may be unable to connect to it.
const MAX_PROMPT_REPLY: Duration = Duration::from_millis(100);
/// How long a process without heartbeats is counted.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long after its first heartbeat a process has no share: every other process has sent a
/// heartbeat by then, or is counted by none of the others.
const SETTLING: Duration = Duration::from_secs(3);
/// The heartbeat of a process that has left.
const LEFT: u64 = 0;
/// How long a process without heartbeats stays in the record.
const REMOVED_AFTER: Duration = Duration::from_secs(60);

/// The processes that share the store.
#[derive(Debug)]
pub(super) struct Membership {
    process: Id,
    /// The longest time in which a store that works for every process answers.
    max_prompt_reply: Duration,
    state: Mutex<State>,
}

/// What this process knows about the others; a pure state machine.
#[derive(Debug, Default)]
struct State {
    processes: HashMap<Id, Process>,
    announced_at: Option<Instant>,
    /// When it read the record, if the last heartbeat was answered in time.
    observed_at: Option<Instant>,
    members: Arc<[Id]>,
    failure: Option<Failure>,
}

/// What this process knows about another one.
#[derive(Clone, Copy, Debug)]
struct Process {
    heartbeat: u64,
    /// For how long this process has read the same heartbeat. The time in which it could not read the
    /// record, or only slowly, does not count: the other process may have been unable to write.
    silence: Duration,
}

/// The members that divide a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) own: Id,
    /// All members, sorted.
    pub(super) all: Arc<[Id]>,
}

impl State {
    /// Processes the record that a heartbeat has read. A process without a place in it is counted like
    /// one without new heartbeats.
    fn observe(&mut self, process: Id, record: &[(Id, u64)], now: Instant, is_prompt: bool) {
        self.failure = None;
        self.announced_at.get_or_insert(now);
        let last = std::mem::replace(&mut self.observed_at, is_prompt.then_some(now));
        if let (Some(last), true) = (last, is_prompt) {
            for process in self.processes.values_mut() {
                process.silence += now.duration_since(last).min(2 * INTERVAL);
            }
        }
        for (id, heartbeat) in record {
            let seen = Process { heartbeat: *heartbeat, silence: Duration::ZERO };
            let known = self.processes.entry(*id).or_insert(seen);
            if known.heartbeat != *heartbeat {
                *known = seen;
            }
        }
        // A failover may lose the record of a process that is alive.
        self.processes.retain(|id, process| {
            process.silence < TIMEOUT || record.iter().any(|(recorded, _)| recorded == id)
        });
        let is_alive = |process: &Process| process.heartbeat != LEFT && process.silence < TIMEOUT;
        let alive = self.processes.iter().filter(|(_, process)| is_alive(process));
        let mut members: Vec<Id> = alive.map(|(id, _)| *id).collect();
        if !members.contains(&process) {
            members.push(process);
        }
        members.sort_unstable();
        if *self.members != *members {
            self.members = members.into();
        }
    }

    /// Processes a heartbeat that failed.
    fn fail(&mut self, failure: Failure) {
        self.failure = Some(failure);
        self.observed_at = None;
    }

    /// Returns the processes whose heartbeats ended long ago.
    fn ended(&self, own: Id) -> Vec<Id> {
        let is_ended =
            |(id, process): &(&Id, &Process)| **id != own && process.silence >= REMOVED_AFTER;
        self.processes.iter().filter(is_ended).map(|(id, _)| *id).collect()
    }

    /// Returns the members, if this process has a share.
    fn members(&self, now: Instant) -> Option<Arc<[Id]>> {
        let announced_at = self.announced_at?;
        let is_settled = now.duration_since(announced_at) >= SETTLING;
        // A process that was the only one to announce itself needs to wait for no other.
        (is_settled || self.members.len() == 1).then(|| Arc::clone(&self.members))
    }
}

impl Membership {
    /// Creates the state of a process whose decisions have this deadline.
    pub(super) fn new(deadline: Duration) -> Self {
        Membership {
            process: Id::from_u128(fastrand::u128(..)),
            max_prompt_reply: deadline.max(MAX_PROMPT_REPLY),
            state: Mutex::default(),
        }
    }

    /// Returns the id of this process.
    pub(super) fn process(&self) -> Id {
        self.process
    }

    /// Returns the members that divide limits; `None` if this process has no share yet.
    pub(super) fn members(&self) -> Option<Members> {
        let all = self.lock().members(Instant::now())?;
        Some(Members { own: self.process, all })
    }

    /// Returns the number of members, if this process has a share, and why the last heartbeat failed.
    pub(super) fn status(&self) -> (Option<usize>, Option<Failure>) {
        let state = self.lock();
        (state.members(Instant::now()).map(|members| members.len()), state.failure.clone())
    }

    /// Announces this process for as long as the task runs. A store with a clock of its own is not
    /// shared, so it has no other members.
    pub(super) async fn run(&self, store: RedisStore) {
        if store.has_own_clock() {
            return self.lock().observe(self.process, &[], Instant::now(), true);
        }
        let mut heartbeat = 0;
        loop {
            heartbeat += 1;
            self.announce(&store, heartbeat).await;
            sleep(INTERVAL).await;
        }
    }

    async fn announce(&self, store: &RedisStore, heartbeat: u64) {
        let sent_at = Instant::now();
        let announced = timeout(HEARTBEAT_TIMEOUT, store.announce(self.process, heartbeat)).await;
        let announced = announced.unwrap_or_else(|_| {
            let message = format!("no reply to a heartbeat within {HEARTBEAT_TIMEOUT:?}");
            Err(Failure::new(FailureKind::Deadline, message))
        });
        match announced {
            Err(failure) => {
                let mut state = self.lock();
                #[cfg(feature = "tracing")]
                if state.failure.is_none() {
                    crate::events::record_outage(&failure);
                }
                state.fail(failure);
            }
            Ok(record) => {
                let now = Instant::now();
                let is_prompt = now.duration_since(sent_at) <= self.max_prompt_reply;
                let ended = {
                    let mut state = self.lock();
                    #[cfg(feature = "tracing")]
                    if state.failure.is_some() {
                        crate::events::record_recovery();
                    }
                    state.observe(self.process, &record, now, is_prompt);
                    state.ended(self.process)
                };
                if !ended.is_empty() {
                    // Another process or a later heartbeat removes them, if this fails.
                    let _ = timeout(HEARTBEAT_TIMEOUT, store.remove_processes(&ended)).await;
                }
            }
        }
    }

    /// Gives the shares of this process to the others.
    pub(super) async fn leave(&self, store: &RedisStore) -> Result<(), Failure> {
        if store.has_own_clock() {
            return Ok(());
        }
        self.announce(store, LEFT).await;
        self.lock().failure.clone().map_or(Ok(()), Err)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Id = Id::from_u128(5);
    const A: Id = Id::from_u128(1);
    const B: Id = Id::from_u128(9);

    fn observe(state: &mut State, start: Instant, at_ms: u64, record: &[(Id, u64)]) -> Vec<Id> {
        let now = start + Duration::from_millis(at_ms);
        state.observe(OWN, record, now, true);
        state.members(now).map_or(Vec::new(), |members| members.to_vec())
    }

    #[test]
    fn a_process_has_a_share_at_once_if_it_is_alone_and_else_after_it_has_settled() {
        let start = Instant::now();
        let mut alone = State::default();
        assert_eq!(observe(&mut alone, start, 0, &[(OWN, 1)]), [OWN]);
        let mut joining = State::default();
        assert_eq!(observe(&mut joining, start, 0, &[(A, 7), (OWN, 1)]), []);
        assert_eq!(observe(&mut joining, start, 2_000, &[(A, 9), (OWN, 3)]), []);
        assert_eq!(observe(&mut joining, start, 3_000, &[(A, 10), (OWN, 4)]), [A, OWN]);
        assert_eq!(State::default().members(start), None, "it was never announced");
    }

    /// Observes records in which A and B have these heartbeats, once a second from `second` on.
    fn observe_each(
        state: &mut State,
        start: Instant,
        second: &mut u64,
        records: impl IntoIterator<Item = [u64; 2]>,
    ) -> Vec<Id> {
        let mut members = Vec::new();
        for [a, b] in records {
            let record = [(A, a), (B, b), (OWN, *second)];
            members = observe(state, start, *second * 1_000, &record);
            *second += 1;
        }
        members
    }

    #[test]
    fn a_process_is_a_member_until_its_heartbeats_have_been_missing_for_the_timeout() {
        let (start, mut second) = (Instant::now(), 0);
        let mut state = State::default();
        let mut observe_each = |state: &mut State, records: Vec<[u64; 2]>| {
            observe_each(state, start, &mut second, records)
        };
        let all = [A, OWN, B];
        assert_eq!(observe_each(&mut state, (0..5).map(|n| [n + 1, 1]).collect()), all);
        assert_eq!(observe_each(&mut state, vec![[6, 1]]), [A, OWN]);
        // It was only late.
        assert_eq!(observe_each(&mut state, vec![[7, 2]]), all);
        assert_eq!(observe_each(&mut state, vec![[8, LEFT]]), [A, OWN]);
        observe_each(&mut state, (0..59).map(|n| [n + 9, LEFT]).collect());
        assert_eq!(state.ended(OWN), []);
        assert_eq!(observe_each(&mut state, vec![[99, LEFT]]), [A, OWN]);
        assert_eq!(state.ended(OWN), [B]);
    }

    #[test]
    fn a_failover_that_loses_the_record_ends_no_process() {
        let start = Instant::now();
        let mut state = State::default();
        observe(&mut state, start, 0, &[(A, 1), (OWN, 1)]);
        for second in 1..5 {
            assert_eq!(state.members.len(), 2, "{second}");
            observe(&mut state, start, second * 1_000, &[(OWN, second)]);
        }
        assert_eq!(observe(&mut state, start, 5_000, &[(OWN, 9)]), [OWN]);
    }

    #[test]
    fn the_last_known_members_count_while_heartbeats_fail() {
        let start = Instant::now();
        let mut state = State::default();
        observe(&mut state, start, 0, &[(A, 1), (OWN, 1)]);
        let later = state.members(start + Duration::from_secs(3_600)).unwrap();
        assert_eq!(*later, [A, OWN]);
        // The other process could write no heartbeats either, however often the store fails.
        for second in 3_600..3_620 {
            state.fail(Failure::new(FailureKind::ConnectionLost, "closed"));
            assert_eq!(
                observe(&mut state, start, second * 1_000, &[(A, 1), (OWN, second)]),
                [A, OWN]
            );
        }
        assert_eq!(observe(&mut state, start, 3_623_000, &[(A, 1), (OWN, 4)]), [A, OWN]);
        assert_eq!(observe(&mut state, start, 3_625_000, &[(A, 1), (OWN, 5)]), [A, OWN]);
        assert_eq!(observe(&mut state, start, 3_626_000, &[(A, 1), (OWN, 6)]), [OWN]);
    }

    /// Others may be unable to connect to a slow store.
    #[test]
    fn heartbeats_that_a_slow_store_answers_end_no_process() {
        let start = Instant::now();
        let mut state = State::default();
        let record = [(A, 1), (OWN, 1)];
        for second in 0..60 {
            let now = start + Duration::from_secs(second);
            state.observe(OWN, &record, now, second == 0);
            assert_eq!(*state.members, [A, OWN], "{second}");
        }
        for second in 60..65 {
            assert_eq!(observe(&mut state, start, second * 1_000, &record), [A, OWN]);
        }
        assert_eq!(observe(&mut state, start, 65_000, &record), [OWN]);
    }
}
