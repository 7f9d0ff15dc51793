//! The queue between decisions and the storage.
//!
//! Each thread adds its decisions to a log of its own, whose memory is allocated in advance. A full log
//! is replaced by an empty one, and a task takes the full ones. If the task holds a log at that moment,
//! or no empty one is left, the log of another thread is used. If all are full, the decision is dropped
//! and counted.

mod log;

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::available_parallelism;

use tokio::sync::Notify;

use crate::record::{MAX_KEY_BYTES, NoteAnswer};
use crate::stats::Counters;
use crate::tracked::Tracked;
pub(crate) use log::{BATCH, Log};

/// The fewest and the most logs that threads add to, both powers of two. There are more than threads,
/// so that one is free even if all other threads and the task hold one.
const MIN_LOGS: usize = 4;
const MAX_LOGS: usize = 32;
const SPARE_LOGS: usize = 2;
/// The most full logs. With them, the queue has room for 65,536 decisions.
const MAX_FULL: usize = 128;
/// The number of full logs from which on the task is woken: the caches of a core still have them.
const FULL_TO_WAKE: usize = 4;

/// A decision about a key.
#[derive(Clone, Copy, Debug)]
pub struct TrackedDecision<'d> {
    /// The key.
    pub key: &'d [u8],
    /// The time of the decision, in µs.
    pub time: u64,
    /// The requested cost.
    pub cost: u64,
    /// The cost that was charged.
    pub granted: u64,
    /// The answer.
    pub answer: NoteAnswer,
    /// The note of the request.
    pub note: Option<&'d str>,
}

/// The logs of all threads.
#[derive(Debug)]
pub(crate) struct Recorder {
    logs: Box<[CacheLine]>,
    pool: Mutex<Pool>,
    /// The log that replaces one that is taken before it is full. Its lock is held as long as logs are
    /// taken, so that a query sees all that was recorded before it.
    spare: Mutex<Log>,
    /// Notified when logs are full.
    pub(crate) is_filling: Notify,
}

/// Keeps the locks of two logs out of the same cache line.
#[derive(Debug)]
#[repr(align(128))]
struct CacheLine(Mutex<Log>);

/// The logs that no thread adds to.
#[derive(Debug)]
struct Pool {
    /// The oldest first.
    full: VecDeque<Log>,
    /// The last one is used first, because caches may still have it.
    empty: Vec<Log>,
}

thread_local! {
    static LOG: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of the log of this thread, modulo the number of logs.
#[inline]
fn log_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    LOG.with(|log| {
        if log.get() == usize::MAX {
            log.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        log.get()
    })
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let threads = available_parallelism().map_or(MIN_LOGS, usize::from);
        let count = (threads + SPARE_LOGS).next_power_of_two().clamp(MIN_LOGS, MAX_LOGS);
        let full = VecDeque::with_capacity(MAX_FULL);
        Recorder {
            logs: (0..count).map(|_| CacheLine(Mutex::new(Log::new()))).collect(),
            pool: Mutex::new(Pool { full, empty: (0..MAX_FULL).map(|_| Log::new()).collect() }),
            spare: Mutex::new(Log::new()),
            is_filling: Notify::new(),
        }
    }

    /// Adds a decision. Never waits and never allocates.
    #[inline]
    pub(crate) fn record(
        &self,
        tracked: &Tracked,
        decision: &TrackedDecision<'_>,
        counters: &Counters,
    ) {
        if decision.key.len() > MAX_KEY_BYTES {
            counters.dropped_long_keys.increment();
            return;
        }
        let first = log_of_thread();
        for offset in 0..self.logs.len() {
            // The number of logs is a power of two.
            let CacheLine(log) = &self.logs[first.wrapping_add(offset) & (self.logs.len() - 1)];
            let Some(mut log) = try_lock(log) else { continue };
            if log.add(tracked.id, decision).is_ok()
                || self.replace(&mut log) && log.add(tracked.id, decision).is_ok()
            {
                return;
            }
        }
        counters.dropped_queue.increment();
        self.is_filling.notify_one();
    }

    /// Puts an empty log in place of a full one, if there is one.
    #[cold]
    fn replace(&self, log: &mut Log) -> bool {
        let Some(mut pool) = try_lock(&self.pool) else { return false };
        let Some(empty) = pool.empty.pop() else { return false };
        pool.full.push_back(std::mem::replace(log, empty));
        if pool.full.len() >= FULL_TO_WAKE {
            drop(pool);
            self.is_filling.notify_one();
        }
        true
    }

    /// Takes what all logs have, and passes it on.
    pub(crate) fn drain(&self, mut each: impl FnMut(&Log)) {
        let mut spare = lock(&self.spare);
        self.drain_full(&mut each);
        for CacheLine(log) in &self.logs {
            let mut log = lock(log);
            if log.is_empty() {
                continue;
            }
            std::mem::swap(&mut *log, &mut *spare);
            drop(log);
            each(&spare);
            spare.clear();
        }
        // A log may have been replaced before its turn came.
        self.drain_full(&mut each);
    }

    /// Takes the logs that are full now. Those that fill meanwhile are for the next time.
    fn drain_full(&self, each: &mut impl FnMut(&Log)) {
        let full = lock(&self.pool).full.len();
        for _ in 0..full {
            let Some(mut log) = lock(&self.pool).full.pop_front() else { return };
            each(&log);
            log.clear();
            lock(&self.pool).empty.push(log);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
