//! The paths of the memory store. The clock stands still, so that every run decides the same.

use anyhow::{Result, ensure};
use tokio::runtime::Builder;
use tollgate::{Check, Limiter, ManualClock, MemoryLimiter, Operation, Policy, Request};

use crate::measure::Work;

const KEYS: usize = 1_000;

pub(crate) fn limiter() -> MemoryLimiter {
    MemoryLimiter::builder().clock(ManualClock::default()).build()
}

pub(crate) fn allowed() -> Result<Work> {
    checks("1000000/s", true)
}

pub(crate) fn denied() -> Result<Work> {
    checks("1/h", false)
}

pub(crate) fn three_limits() -> Result<Work> {
    checks("1000000/s; 1000000/min fixed; 1000000/h sliding", true)
}

/// Single checks of known keys.
fn checks(limits: &str, is_allowed: bool) -> Result<Work> {
    let (limiter, policy, keys) = (limiter(), Policy::named("api", limits)?, bench::keys(KEYS));
    for key in &keys {
        ensure!(limiter.check(&policy, key).allowed);
    }
    let mut next = 0;
    let call = move || {
        let decision = limiter.check(&policy, &keys[next % KEYS]);
        next += 1;
        ensure!(decision.allowed == is_allowed, "{decision:?}");
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: 1 })
}

/// Checks of keys that the table does not have.
pub(crate) fn new_key() -> Result<Work> {
    let (limiter, policy) = (limiter(), Policy::named("api", "10/h")?);
    let mut keys = bench::keys(100_000).into_iter();
    let call = move || {
        let Some(key) = keys.next() else { anyhow::bail!("too few keys") };
        ensure!(limiter.check(&policy, &key).remaining == 9);
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: 1 })
}

/// Independent checks in one call; the table is so small that they are decided one at a time.
pub(crate) fn check_each() -> Result<Work> {
    checks_in_batches(KEYS)
}

/// The same with a table so large that they are looked up together.
pub(crate) fn check_each_of_many() -> Result<Work> {
    checks_in_batches(10 * KEYS)
}

fn checks_in_batches(key_count: usize) -> Result<Work> {
    const CHECKS: usize = 64;
    let (limiter, policy) = (limiter(), Policy::named("api", "1000000/s")?);
    let keys = bench::keys(key_count);
    for key in &keys {
        ensure!(limiter.check(&policy, key).allowed);
    }
    let mut decisions = Vec::new();
    let mut first = 0;
    let call = move || {
        let key = |index| &keys[(first + index) % key_count];
        let checks: [_; CHECKS] = std::array::from_fn(|index| Check::new(&policy, key(index)));
        decisions.clear();
        limiter.check_each_into(&checks, &mut decisions)?;
        ensure!(decisions.iter().all(|decision| decision.allowed));
        first += CHECKS;
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: CHECKS })
}

/// Requests of one check each, as a connection pipelines them.
pub(crate) fn batch() -> Result<Work> {
    const REQUESTS: usize = 64;
    let (limiter, policy) = (Limiter::from(limiter()), Policy::named("api", "1000000/s")?);
    let keys = bench::keys(KEYS);
    let runtime = Builder::new_current_thread().build()?;
    let mut first = 0;
    let call = move || {
        let key = |index| &keys[(first + index) % KEYS];
        let checks: Vec<_> = (0..REQUESTS).map(|index| Check::new(&policy, key(index))).collect();
        let operation = Operation::Check { lease: None };
        let request = |checks| Request { operation, checks, request_id: None };
        let requests: Vec<_> = checks.chunks(1).map(request).collect();
        for answer in runtime.block_on(limiter.decide_batch(&requests)) {
            ensure!(answer?.allowed());
        }
        first += REQUESTS;
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: REQUESTS })
}

pub(crate) fn three_checks() -> Result<Work> {
    checks_in_one_request::<3>()
}

/// As many checks in one request as are accepted.
pub(crate) fn many_checks() -> Result<Work> {
    checks_in_one_request::<32>()
}

fn checks_in_one_request<const CHECKS: usize>() -> Result<Work> {
    let (limiter, policy) = (limiter(), Policy::named("api", "1000000/s")?);
    let keys = bench::keys(KEYS);
    let mut first = 0;
    let call = move || {
        let key = |index| &keys[(first + index) % KEYS];
        let checks: Vec<_> = (0..CHECKS).map(|index| Check::new(&policy, key(index))).collect();
        ensure!(limiter.check_all(&checks)?.allowed());
        first += CHECKS;
        Ok(())
    };
    Ok(Work { call: Box::new(call), operations: CHECKS })
}
