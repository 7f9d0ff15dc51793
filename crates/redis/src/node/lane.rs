//! The near end of a connection: where requests wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tollgate_core::{Micros, Timestamp};
use tollgate_store::{Failure, FailureKind, StoreError};

use super::queue::Queue;
use super::{Common, News};
use crate::waiting::Waiting;

#[derive(Debug)]
pub(crate) struct Lane {
    pub(super) common: Arc<Common>,
    /// Something is to be done.
    pub(super) wake: Notify,
    /// How many requests wait for the node.
    waiting: Arc<AtomicUsize>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    queue: Queue,
    /// Why there is no connection, once an attempt has failed.
    down: Option<Failure>,
    is_closed: bool,
}

impl Lane {
    pub(super) fn new(common: Arc<Common>, waiting: Arc<AtomicUsize>) -> Self {
        Lane { common, wake: Notify::new(), waiting, inner: Mutex::default() }
    }

    /// Puts a request in line, or answers it at once.
    pub(super) fn push(&self, waiting: Waiting) {
        let mut inner = self.lock();
        if inner.is_closed {
            drop(inner);
            self.return_all(vec![waiting]);
        } else if let Some(failure) = inner.down.clone() {
            drop(inner);
            self.fail(vec![waiting], &failure.into());
        } else if self.waiting.load(Ordering::Relaxed) >= self.common.options.queue {
            drop(inner);
            let message = format!("{} wait", self.common.options.queue);
            let error = StoreError::unavailable(FailureKind::Overloaded, message);
            self.fail(vec![waiting], &error);
        } else {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            inner.queue.push(waiting);
            drop(inner);
            self.wake.notify_one();
        }
    }

    /// Takes the next requests, without those whose caller has gone.
    pub(super) fn take(&self) -> Vec<Waiting> {
        loop {
            let taken = self.lock().queue.take(self.common.options.batch);
            if taken.is_empty() {
                return taken;
            }
            self.left(taken.len());
            let mut wanted = Vec::with_capacity(taken.len());
            for waiting in taken {
                if waiting.caller.is_gone() {
                    self.common.counters.abandoned.count();
                } else {
                    wanted.push(waiting);
                }
            }
            if !wanted.is_empty() {
                return wanted;
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().queue.is_empty()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Answers those who wait for longer than a call may take. They were not sent.
    pub(super) fn expire(&self) {
        let longest = self.common.options.call_timeout.as_micros();
        let longest = Micros::new(u64::try_from(longest).unwrap_or(u64::MAX));
        let oldest: Timestamp = self.common.clock.now().saturating_sub(longest);
        let older = self.lock().queue.take_older(oldest);
        if !older.is_empty() {
            self.left(older.len());
            let message = "it waited for a connection longer than a call may take";
            self.fail(older, &StoreError::unavailable(FailureKind::Unreachable, message));
        }
    }

    /// There is a connection.
    pub(super) fn set_up(&self) {
        self.lock().down = None;
    }

    /// An attempt to connect has failed: whoever waits is told so, and whoever comes.
    pub(super) fn set_down(&self, failure: Failure) {
        let mut inner = self.lock();
        inner.down = Some(failure.clone());
        let waiting = inner.queue.take_all();
        drop(inner);
        self.left(waiting.len());
        self.fail(waiting, &failure.into());
    }

    /// Nothing is to be sent here any more.
    pub(super) fn close(&self) {
        let mut inner = self.lock();
        inner.is_closed = true;
        let waiting = inner.queue.take_all();
        drop(inner);
        self.left(waiting.len());
        self.return_all(waiting);
        self.wake.notify_one();
    }

    /// Answers all of them with an error.
    pub(super) fn fail(&self, all: Vec<Waiting>, error: &StoreError) {
        for waiting in all {
            self.common.counters.failed(error);
            waiting.caller.answer(Err(error.clone()));
        }
    }

    /// Tells the news; without anybody to tell, the requests in it are answered with the failure.
    pub(super) fn tell(&self, news: News) -> Result<(), News> {
        match &self.common.news {
            Some(told) => told.send(news).map_err(|error| error.0),
            None => Err(news),
        }
    }

    fn return_all(&self, waiting: Vec<Waiting>) {
        if waiting.is_empty() {
            return;
        }
        if let Err(News::Route(waiting)) = self.tell(News::Route(waiting)) {
            let error = StoreError::unavailable(FailureKind::Unreachable, "the store was closed");
            self.fail(waiting, &error);
        }
    }

    fn left(&self, count: usize) {
        self.waiting.fetch_sub(count, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
