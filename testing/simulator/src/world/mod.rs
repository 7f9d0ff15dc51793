//! The state of a simulation, and what happens to it at virtual times.

pub(crate) mod connection;
mod delivery;
pub(crate) mod events;
mod execution;
pub(crate) mod link;
pub(crate) mod process;
mod replication;
pub(crate) mod state;

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;

use tokio::sync::Notify;
use tokio::time::Instant;

use state::State;

/// The state, shared by all handles, streams and the driver.
pub(crate) struct Shared {
    state: Mutex<State>,
    start: Instant,
    /// Wakes the driver.
    wake: Notify,
}

impl Shared {
    pub(crate) fn new(seed: u64, keeps_log: bool) -> Self {
        Shared {
            state: Mutex::new(State::new(seed, keeps_log)),
            start: Instant::now(),
            wake: Notify::new(),
        }
    }

    /// Reads or changes the state at the current time. All events up to now happen first.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.start.elapsed();
        state.run_until(now);
        let result = change(&mut state);
        state.run_until(now);
        let wakers = std::mem::take(&mut state.wakers);
        let next = state.events.next_time();
        let is_sooner = next.is_some_and(|next| state.driven_at.is_none_or(|at| next < at));
        drop(state);
        // Without the lock, because a task that is woken may use the state.
        wakers.into_iter().for_each(Waker::wake);
        if is_sooner {
            self.wake.notify_one();
        }
        result
    }

    /// Runs the events when their time comes.
    pub(crate) async fn drive(self: Arc<Self>) {
        loop {
            let next = self.with(|state| {
                state.driven_at = state.events.next_time();
                state.driven_at
            });
            let woken = self.wake.notified();
            match next {
                None => woken.await,
                Some(at) => tokio::select! {
                    biased;
                    () = woken => {}
                    () = tokio::time::sleep_until(self.start + at) => {}
                },
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
