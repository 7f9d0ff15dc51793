//! The circuit breaker of a server at work: what it counts, and the task that probes the server.

use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tollgate_state::{Failure, FailureKind, StoreError};

use super::batch::Batch;
use super::breaker::{Breaker, EndedCall, Outcome, Step, is_unable};
use super::pool::Pool;
use crate::connection::{CallOptions, CommandError};
use crate::context::sleep_until;
use crate::encode::Call;
use crate::error;
use crate::jitter::Jitter;

impl Pool {
    pub(super) fn lock_breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if a request that decides is not to be sent.
    pub(super) fn check_breaker(&self) -> Result<(), StoreError> {
        let mut breaker = self.lock_breaker();
        if breaker.admit() {
            return Ok(());
        }
        let rejection = breaker.rejection(&self.address.to_string());
        drop(breaker);
        // Why there is no connection says more.
        let error = StoreError::from(self.failure().unwrap_or(rejection));
        self.record(|counters| counters.record_error(&error, false));
        Err(error)
    }

    /// Changes the state of the breaker, and starts the task when it opens.
    fn change_breaker<T>(self: &Arc<Self>, change: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breaker = self.lock_breaker();
        let was_closed = breaker.is_closed();
        let result = change(&mut breaker);
        let (is_closed, opened) = (breaker.is_closed(), breaker.opened());
        // Under the lock, so that the number agrees with the states.
        match (was_closed, is_closed) {
            (true, false) => drop(self.context.active_breakers.fetch_add(1, Ordering::Relaxed)),
            (false, true) => drop(self.context.active_breakers.fetch_sub(1, Ordering::Relaxed)),
            _ => {}
        }
        drop(breaker);
        if was_closed && !is_closed {
            tokio::spawn(Arc::clone(self).recover(opened));
        }
        result
    }

    /// Records the end of a call.
    pub(super) fn record_call_end<T>(
        self: &Arc<Self>,
        batch: &Batch,
        sent: Instant,
        result: &Result<T, CommandError>,
    ) {
        if !self.context.options.breaker {
            return;
        }
        let now = Instant::now();
        let failure = result.as_ref().err().and_then(failure);
        let outcome = match &failure {
            Some(failure) => Outcome::Failed(failure),
            None if batch.is_late(now) => Outcome::Late,
            None => Outcome::InTime,
        };
        let is_answered = !matches!(result, Err(CommandError::Lost(_)));
        let call = EndedCall { sent, outcome, is_answered, budget: batch.budget() };
        let is_closed = self.change_breaker(|breaker| {
            breaker.record_call(call, now, Jitter::random);
            breaker.is_closed()
        });
        if !is_closed {
            self.probe_wake.notify_one();
        }
    }

    /// Records that a call has been in flight for its stall time.
    pub(super) fn record_stall(self: &Arc<Self>, sent: Instant, budget: Duration) {
        let now = Instant::now();
        self.change_breaker(|breaker| breaker.record_stall(sent, budget, now, Jitter::random()));
    }

    /// Records that a new connection is up.
    pub(super) fn record_connection(&self) {
        self.lock_breaker().record_connection(Instant::now());
        self.probe_wake.notify_one();
    }

    /// Probes the server until the breaker is closed, or until it opens again and has another task.
    async fn recover(self: Arc<Self>, opened: u64) {
        while !self.is_closed() {
            let step = self.change_breaker(|breaker| {
                let is_current = breaker.opened() == opened;
                if is_current { breaker.step(Instant::now()) } else { Step::Done }
            });
            match step {
                Step::Done => return,
                Step::Wait(until) => tokio::select! {
                    () = self.probe_wake.notified() => {}
                    () = sleep_until(until) => {}
                },
                Step::Probe(threshold) => {
                    let is_answered = self.probe(threshold).await;
                    let (now, jitter) = (Instant::now(), Jitter::random());
                    self.change_breaker(|breaker| breaker.record_probe(is_answered, now, jitter));
                }
            }
        }
    }

    /// Returns whether the server executes the script within a time. The call has no requests, and a key
    /// of which nothing is stored, so that a cluster checks whether it may serve its slot.
    async fn probe(self: &Arc<Self>, threshold: Duration) -> bool {
        let Some(connection) = self.probed_connection() else { return false };
        let partition = self.partition.load(Ordering::Relaxed);
        let keys = vec![self.context.keyspace.unused_name_in(partition).into()];
        let call = Call { keys, ..Call::empty() };
        let mut call = Box::pin(connection.commands.call(&call, CallOptions::default()));
        if let Ok(result) = timeout(threshold, &mut call).await {
            return result.err().as_ref().and_then(failure).is_none();
        }
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            // As with any call, the connection is replaced after the timeout: no other call may do so
            // while requests are rejected.
            if let Err(CommandError::Lost(lost)) = call.await {
                let lost = Failure::new(FailureKind::Unreachable, lost.message);
                pool.replace(&connection, lost);
            }
        });
        false
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.lock_breaker().is_closed() {
            self.context.active_breakers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Returns the failure of a call that a server could not execute. Other errors concern the request.
fn failure(error: &CommandError) -> Option<Failure> {
    match error {
        CommandError::Lost(failure) => Some(failure.clone()),
        CommandError::Server(error) => {
            Some(error::from_server(error)).filter(|failure| is_unable(failure.kind))
        }
    }
}
