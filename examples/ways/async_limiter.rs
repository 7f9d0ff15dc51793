//! `Limiter`: the same limits over a choice of stores, asynchronously. Code that is written for it
//! runs unchanged when the store moves out of the process; `Limiter::open` takes its URL.
//!
//! On memory its futures are ready at once, so it needs no runtime: the `block_on` below is all
//! there is to it. A store may fail to answer, so a check is a `Result`; a denial still is no
//! error. See in the output that two threads share one limiter, and that of their ten requests five
//! pass.
//!
//! Real code writes `Limiter::open("memory").await?`, and gets this machine's clock.
#![expect(clippy::print_stdout, reason = "it shows what it does")]

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

/// Runs a future on this thread to its end. A service has its runtime's.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (pin!(future), Arc::new(Unpark(thread::current())).into());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(poll) => return poll,
            Poll::Pending => thread::park(),
        }
    }
}

async fn serve(limiter: Limiter, requests: usize) -> Result<usize, Box<dyn Error + Send + Sync>> {
    let api = limiter.limit("5/min log")?;
    let mut passed = 0;
    for _ in 0..requests {
        passed += usize::from(limiter.check(&api, Key::new("user:42")?).await?.allowed());
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
    let denied = block_on(limiter.check(&api, key))?;
    println!("one more: again in {} s", denied.retry_after().unwrap_or_default());
    let reset = block_on(limiter.execute(Operation::Reset, &api, key, Cost::ZERO))?;
    println!("after a reset: {} left", reset.remaining);
    assert_eq!((denied.allowed(), reset.remaining), (false, 5));

    // What cannot be decided is an error that says what to do, here and on every store.
    let wrong: Result<_, StoreError> =
        block_on(limiter.execute(Operation::Take, &api, key, Cost::ZERO));
    println!("take 0: {}", wrong.err().ok_or("it was taken")?);
    Ok(())
}
