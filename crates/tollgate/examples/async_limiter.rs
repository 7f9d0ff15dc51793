//! `Limiter`: an asynchronous limiter over a choice of stores. `Limiter::open` takes the store's URL,
//! so that code runs unchanged when the state moves from memory to Redis.
//!
//! In memory its futures are always ready, so no runtime is needed; the `block_on` below is enough. A
//! check always returns a decision, because the policy decides if the store fails; other operations
//! return a `Result`. The output shows two threads that share a limiter: five of their ten requests pass.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

use tollgate::{Cost, Key, Limiter, ManualClock, MemoryLimiter, Operation, StoreError};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to completion on this thread. A service uses its runtime instead.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (pin!(future), Arc::new(Unpark(thread::current())).into());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

async fn serve(limiter: Limiter, requests: usize) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let api = limiter.limit("5/min log")?;
    let mut passed = 0;
    for _ in 0..requests {
        passed += usize::from(limiter.check(&api, Key::new("user:42")?).await.allowed);
    }
    Ok(passed)
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let clock = ManualClock::default();
    let limiter = Limiter::from(MemoryLimiter::builder().clock(clock).build());
    let handle = || {
        thread::spawn({
            let limiter = limiter.clone();
            move || block_on(serve(limiter, 5))
        })
    };
    let mut passed = 0;
    for thread in [handle(), handle()] {
        passed += thread.join().map_err(|_| "a thread panicked")??;
    }
    println!("10 requests on two threads: {passed} passed");
    assert_eq!(passed, 5);

    let api = limiter.limit("5/min log")?;
    let key = Key::new("user:42")?;
    let denied = block_on(limiter.check(&api, key));
    println!("denied: retry in {} s", denied.retry_after.unwrap_or_default());
    let reset = block_on(limiter.execute(Operation::Reset, &api, key, Cost::ZERO))?;
    println!("after a reset: {} left", reset.remaining);
    assert_eq!((denied.allowed, reset.remaining), (false, 5));

    // An invalid request is an error with a remedy, on every store.
    let wrong: Result<_, StoreError> =
        block_on(limiter.execute(Operation::Take, &api, key, Cost::ZERO));
    println!("take 0: {}", wrong.err().ok_or("take 0 succeeded")?);
    Ok(())
}
