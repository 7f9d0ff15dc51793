//! The queue between decisions and the storage.
//!
//! Each thread adds its decisions to a table of its own, whose memory is allocated in advance; decisions
//! about the same key are added up there. A task takes the tables at an interval. If the task holds a
//! table at that moment, or the table is full, the next one is used: any table may have any key. If all
//! are full, the decision is dropped and counted.

mod table;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::available_parallelism;

use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use tokio::sync::Notify;

use crate::record::{MAX_KEY_BYTES, NoteAnswer};
use crate::stats::Counters;
use crate::tracked::Tracked;
pub(crate) use table::Delta;
use table::{Observation, Table};

/// The fewest and the most tables. There are more than threads, so that one is free even if all other
/// threads and the task hold one.
const MIN_TABLES: usize = 4;
const MAX_TABLES: usize = 32;
const SPARE_TABLES: usize = 2;

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

/// The tables of all threads.
#[derive(Debug)]
pub(crate) struct Recorder {
    tables: Box<[CacheLine]>,
    /// The table that replaces one that is taken.
    spare: Mutex<Table>,
    hasher: RandomState,
    /// Notified when a table fills up.
    pub(crate) is_filling: Notify,
}

/// Keeps the locks of two tables out of the same cache line.
#[derive(Debug)]
#[repr(align(128))]
struct CacheLine(Mutex<Table>);

thread_local! {
    static TABLE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The number of the table of this thread, modulo the number of tables.
#[inline]
fn table_of_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    TABLE.with(|table| {
        if table.get() == usize::MAX {
            table.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        table.get()
    })
}

impl Recorder {
    pub(crate) fn new() -> Self {
        let threads = available_parallelism().map_or(MIN_TABLES, usize::from);
        let count = (threads + SPARE_TABLES).clamp(MIN_TABLES, MAX_TABLES);
        Recorder {
            tables: (0..count).map(|_| CacheLine(Mutex::new(Table::new()))).collect(),
            spare: Mutex::new(Table::new()),
            hasher: RandomState::default(),
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
        let start = if tracked.interval == 0 {
            0
        } else {
            decision.time - decision.time % tracked.interval
        };
        let hash =
            self.hasher.hash_one(decision.key) ^ start ^ u64::from(tracked.id).rotate_left(32);
        let observation = Observation { tracked, hash, start, decision };
        let first = table_of_thread();
        for offset in 0..self.tables.len() {
            let CacheLine(table) = &self.tables[(first.wrapping_add(offset)) % self.tables.len()];
            let mut table = match table.try_lock() {
                Ok(table) => table,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if table.add(&observation).is_ok() {
                if table.starts_to_fill() {
                    drop(table);
                    self.is_filling.notify_one();
                }
                return;
            }
        }
        counters.dropped_queue.increment();
        self.is_filling.notify_one();
    }

    /// Takes what all tables have, and passes it on.
    pub(crate) fn drain(&self, mut each: impl FnMut(Delta<'_>)) {
        let mut spare = lock(&self.spare);
        for CacheLine(table) in &self.tables {
            let mut table = lock(table);
            if table.is_empty() {
                continue;
            }
            std::mem::swap(&mut *table, &mut *spare);
            drop(table);
            spare.deltas().for_each(&mut each);
            spare.clear();
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}
