//! Futures that complete although their owner is dropped.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::runtime::Handle;

/// A boxed future.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A future that runs to its end: if it is dropped before, the runtime completes it, and then drops
/// its output.
#[must_use = "futures do nothing unless polled"]
pub struct Completed<T: Send + 'static> {
    future: Option<BoxFuture<T>>,
    runtime: Option<Handle>,
}

impl<T: Send + 'static> Completed<T> {
    /// Wraps a future, within a runtime.
    pub fn new(future: impl Future<Output = T> + Send + 'static) -> Self {
        Completed { future: Some(Box::pin(future)), runtime: Handle::try_current().ok() }
    }
}

impl<T: Send + 'static> Future for Completed<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        #[expect(clippy::expect_used, reason = "documented for all futures")]
        let future = self.future.as_mut().expect("the future is not polled after its end");
        let poll = future.as_mut().poll(context);
        if poll.is_ready() {
            self.future = None;
        }
        poll
    }
}

impl<T: Send + 'static> fmt::Debug for Completed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completed").finish_non_exhaustive()
    }
}

impl<T: Send + 'static> Drop for Completed<T> {
    fn drop(&mut self) {
        if let (Some(future), Some(runtime)) = (self.future.take(), &self.runtime) {
            runtime.spawn(future);
        }
    }
}

/// Completes a future in the background. It is polled once at once: a store in memory is then done,
/// and a request to Redis is queued before the requests that follow.
pub fn complete(runtime: Option<&Handle>, future: impl Future<Output = ()> + Send + 'static) {
    let mut future = Box::pin(future);
    // The runtime's timers and sockets are available to the first poll too.
    let _guard = runtime.map(Handle::enter);
    let poll = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    if let (Poll::Pending, Some(runtime)) = (poll, runtime) {
        runtime.spawn(future);
    }
}
