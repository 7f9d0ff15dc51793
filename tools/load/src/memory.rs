//! A limiter in this process.

use std::time::Duration;

use tokio::sync::watch::Receiver;
use tollgate::{Cost, Decision, Key, MemoryLimiter, Policy, Reason};

use crate::answer::Answer;
use crate::clock::{Nanos, nanos};
use crate::keys::Keys;
use crate::tally::Asked;
use crate::worker::Worker;

/// What all threads ask.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    limiter: MemoryLimiter,
    policy: Policy,
    cost: Cost,
    keys: Keys,
}

/// How many requests are made between two looks at whether to stop.
const STRIDE: u64 = 64;
/// What is waited for by sleeping; the rest is spent looking at the clock.
const WORTH_SLEEPING: Nanos = 200_000;

impl Memory {
    pub(crate) fn new(policy: Policy, cost: Cost, keys: Keys) -> Self {
        let places = usize::try_from(keys.count).unwrap_or(usize::MAX);
        // Nobody is to be put out.
        let limiter =
            MemoryLimiter::builder().max_keys(places.saturating_mul(2).max(1_024)).build();
        Memory { limiter, policy, cost, keys }
    }

    /// Asks until there is nothing more to ask, or it is told to stop.
    pub(crate) fn drive(&self, worker: &Worker, stop: &Receiver<bool>) {
        let mut name = self.keys.name(0).into_bytes();
        let mut now = worker.clock.now();
        let mut told = [0, 0];
        for number in 1.. {
            let Some(due) = worker.take_at(now) else { break };
            if number % STRIDE == 0 {
                worker.tell(std::mem::take(&mut told));
                if *stop.borrow() {
                    break;
                }
            }
            if due > now {
                now = wait(worker, due, stop);
            }
            let key = worker.choose();
            self.rename(&mut name, key);
            worker.sent();
            let Ok(name) = Key::new(&name) else { break };
            let decision = self.limiter.check_cost(&self.policy, name, self.cost);
            let asked = Asked { key, due, sent: now };
            now = worker.clock.now();
            told[usize::from(!decision.allowed)] += 1;
            let admission = worker.answered_at(asked, now, &answer(&decision));
            if let Some(hold) = worker.hold {
                self.hold(worker, name, &decision, admission, hold);
                now = worker.clock.now();
            }
        }
        worker.tell(told);
    }

    /// Writes a key's number over another's.
    fn rename(&self, name: &mut [u8], key: u32) {
        let mut text = itoa::Buffer::new();
        let width = self.keys.width();
        let start = name.len().saturating_sub(width);
        let Some(place) = name.get_mut(start..) else { return };
        place.fill(b'0');
        let digits = text.format(key).bytes().rev();
        place.iter_mut().rev().zip(digits).for_each(|(place, digit)| *place = digit);
    }

    fn hold(
        &self,
        worker: &Worker,
        key: Key<'_>,
        decision: &Decision,
        admission: Option<usize>,
        span: Nanos,
    ) {
        let Some(lease) = decision.lease.filter(|_| decision.allowed) else { return };
        std::thread::sleep(Duration::from_nanos(span));
        if let Ok(released) = self.limiter.release(&self.policy, key, lease) {
            worker.released(admission, Some(released.time.as_micros()));
        }
    }
}

fn answer(decision: &Decision) -> Answer {
    Answer {
        allowed: decision.allowed,
        degraded: decision.degraded,
        by_limits: decision.reason == Reason::Limit,
        time: Some(decision.time.as_micros()),
        delay: decision.delay.get(),
    }
}

/// Waits until then, or until it is told to stop; what time it is.
fn wait(worker: &Worker, due: Nanos, stop: &Receiver<bool>) -> Nanos {
    /// How often it looks whether to stop.
    const LOOKS: Duration = Duration::from_millis(50);
    loop {
        let now = worker.clock.now();
        let rest = due.saturating_sub(now);
        if rest == 0 || *stop.borrow() {
            return now;
        }
        if rest > WORTH_SLEEPING {
            std::thread::sleep(Duration::from_nanos(rest - WORTH_SLEEPING / 2).min(LOOKS));
        } else {
            debug_assert!(rest <= nanos(LOOKS), "it is short");
            std::hint::spin_loop();
        }
    }
}
