//! Load on a limiter in this process.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tollgate::{Cost, Id, Key, MemoryLimiter, Policy, Reason};

use crate::clock::Nanos;
use crate::keys::Keys;
use crate::reply::Decision;
use crate::tally::{Counts, SentRequest};
use crate::wire::Template;
use crate::worker::Worker;

/// The limiter that all threads share.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    limiter: MemoryLimiter,
    policy: Policy,
    cost: Cost,
    key: Template,
}

/// How many requests are made between two checks for a stop.
const STOP_CHECK_INTERVAL: u64 = 64;
/// Waits above this sleep; shorter ones spin.
const MIN_SLEEP: Nanos = 200_000;

impl Memory {
    #[expect(clippy::expect_used, reason = "supported targets have at least 32-bit addresses")]
    pub(crate) fn new(policy: Policy, cost: Cost, keys: &Keys) -> Self {
        let count = usize::try_from(keys.count).expect("32 bits fit a usize");
        // Twice the keys, so that none is evicted.
        let builder = MemoryLimiter::builder().max_keys(count.saturating_mul(2).max(1_024));
        let limiter = builder.max_bytes(usize::MAX).build();
        Memory { limiter, policy, cost, key: Template::default().key(keys) }
    }

    /// Sends requests until none is left, or the run is stopped.
    #[expect(clippy::expect_used, reason = "the length of the prefix is checked with the plan")]
    pub(crate) fn drive(&self, worker: &Worker, stop: &Receiver<bool>) {
        let mut text = Vec::new();
        let mut now = worker.clock.now();
        let mut counts = Counts::default();
        for number in 1.. {
            let Some(due) = worker.take_at(now) else { break };
            if number % STOP_CHECK_INTERVAL == 0 {
                worker.add_progress(std::mem::take(&mut counts));
                if *stop.borrow() {
                    break;
                }
            }
            if due > now {
                now = wait(worker, due, stop);
            }
            let key = worker.choose_key();
            text.clear();
            self.key.write(key, 0, Id::from_u128(0), &mut text);
            worker.count_sent();
            let name = Key::new(&text).expect("a key of valid length");
            let decision = self.limiter.check_cost(&self.policy, name, self.cost);
            let request = SentRequest { key, due, sent: now };
            now = worker.clock.now();
            counts.add(decision.allowed);
            let admission = worker.record_at(request, now, &from_library(&decision));
            if let Some(hold) = worker.hold {
                self.hold(worker, name, &decision, admission, hold);
                now = worker.clock.now();
            }
        }
        worker.add_progress(counts);
    }

    fn hold(
        &self,
        worker: &Worker,
        key: Key<'_>,
        decision: &tollgate::Decision,
        admission: Option<usize>,
        duration: Nanos,
    ) {
        let Some(lease) = decision.lease.filter(|_| decision.allowed) else { return };
        std::thread::sleep(Duration::from_nanos(duration));
        // A lease that expired before its release stays in the verification until its expiry.
        if let Ok(released) = self.limiter.release(&self.policy, key, lease) {
            worker.record_release(admission, Some(released.time.as_micros()));
        }
    }
}

fn from_library(decision: &tollgate::Decision) -> Decision {
    Decision {
        allowed: decision.allowed,
        degraded: decision.degraded,
        by_limits: decision.reason == Reason::Limit,
        time: Some(decision.time.as_micros()),
        delay: decision.delay.get(),
    }
}

/// Waits until `due` or until the run is stopped; returns the time.
fn wait(worker: &Worker, due: Nanos, stop: &Receiver<bool>) -> Nanos {
    /// How long a sleep lasts before the next check for a stop.
    const MAX_SLEEP: Duration = Duration::from_millis(50);
    loop {
        let now = worker.clock.now();
        let remaining = due.saturating_sub(now);
        if remaining == 0 || *stop.borrow() {
            return now;
        }
        if remaining > MIN_SLEEP {
            std::thread::sleep(Duration::from_nanos(remaining - MIN_SLEEP / 2).min(MAX_SLEEP));
        } else {
            std::hint::spin_loop();
        }
    }
}
