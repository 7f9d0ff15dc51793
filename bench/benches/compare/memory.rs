//! Single checks in process, including the clock, by keys in the order of Zipf's law.
#![expect(clippy::ptr_arg, reason = "governor's table is queried by `&String`")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::thread;

use anyhow::{Result, ensure};
use bench::Effort;
use bench::figures::{number, ratio};
use bench::process::{self, own_cpu_ns};
use bench::report::{Curve, Report, Row, Sample};
use tollgate::{Check, Key, MemoryLimiter, Policy};
use tollgate_state::Clock;

/// How many keys are drawn in advance; threads repeat them.
const DRAWS: usize = 1 << 20;
/// The rate per second, and the burst: most checks are admitted, the hottest keys are sometimes
/// denied.
const RATE: u32 = 1_000;
/// Checks of a batch.
const BATCH: usize = 64;

/// A limiter under test.
trait KeyedLimiter: Sync {
    fn check(&self, key: &String) -> bool;

    /// Checks the keys of these indices; returns how many were admitted.
    fn check_all(&self, keys: &[String], indices: &[usize]) -> usize {
        indices.iter().filter(|index| self.check(&keys[**index])).count()
    }
}

struct Tollgate(MemoryLimiter, Policy);

impl KeyedLimiter for Tollgate {
    fn check(&self, key: &String) -> bool {
        Key::new(key).is_ok_and(|key| self.0.check(&self.1, key).allowed)
    }
}

/// Tollgate with [`BATCH`] checks in each call.
struct Batches(Tollgate);

impl KeyedLimiter for Batches {
    fn check(&self, key: &String) -> bool {
        self.0.check(key)
    }

    fn check_all(&self, keys: &[String], indices: &[usize]) -> usize {
        let Tollgate(limiter, policy) = &self.0;
        let mut admitted = 0;
        for batch in indices.chunks(BATCH) {
            let checks: Vec<_> =
                batch.iter().map(|index| Check::new(policy, &keys[*index])).collect();
            #[expect(clippy::expect_used, reason = "every key has 24 bytes")]
            let decisions = limiter.check_each(&checks).expect("the keys are valid");
            admitted += decisions.iter().filter(|decision| decision.allowed).count();
        }
        admitted
    }
}

struct Governor(governor::DefaultKeyedRateLimiter<String>);

impl KeyedLimiter for Governor {
    fn check(&self, key: &String) -> bool {
        self.0.check_key(key).is_ok()
    }
}

struct RateNet(rate_net::RateLimiter);

impl KeyedLimiter for RateNet {
    fn check(&self, key: &String) -> bool {
        self.0.check(key).is_allow()
    }
}

fn tollgate(limits: &str, keys: usize) -> Result<Tollgate> {
    let limiter = MemoryLimiter::builder().max_keys(2 * keys).max_bytes(usize::MAX).build();
    Ok(Tollgate(limiter, limits.parse()?))
}

fn governor() -> Governor {
    let rate = NonZeroU32::new(RATE).unwrap_or(NonZeroU32::MIN);
    Governor(governor::RateLimiter::keyed(governor::Quota::per_second(rate)))
}

type System = (String, Box<dyn KeyedLimiter>);

/// The limiters, each of which knows all keys.
fn systems(keys: &[String], has_batches: bool) -> Result<Vec<System>> {
    let tollgate = tollgate(&format!("{RATE}/s"), keys.len())?;
    let tollgate: Box<dyn KeyedLimiter> = match has_batches {
        false => Box::new(tollgate),
        true => Box::new(Batches(tollgate)),
    };
    let mut systems: Vec<System> =
        vec![("tollgate".to_owned(), tollgate), ("governor".to_owned(), Box::new(governor()))];
    if !has_batches {
        let rate_net = RateNet(rate_net::RateLimiter::per_second(RATE));
        systems.push(("rate-net".to_owned(), Box::new(rate_net)));
    }
    for (name, limiter) in &systems {
        ensure!(keys.iter().all(|key| limiter.check(key)), "{name} denies the first check");
    }
    Ok(systems)
}

pub(crate) fn run(effort: Effort, report: &mut Report) -> Result<()> {
    process::unpin()?;
    for count in [1_000, 1_000_000] {
        let (keys, draws) = (bench::keys(count), bench::zipf(count, DRAWS));
        let mut measure = |name: String, threads, systems: &mut Vec<System>| {
            let checks = DRAWS / effort.divisor;
            let row = Row::measure(name, effort.rounds, systems, |limiter| {
                measure(&**limiter, &keys, &draws, threads, checks)
            });
            row.map(|row| report.rows.push(row))
        };
        let mut singles = systems(&keys, false)?;
        measure(format!("in process, {count} keys, 1 thread"), 1, &mut singles)?;
        measure(format!("in process, {count} keys, 2 threads"), 2, &mut singles)?;
        drop(singles);
        let mut batches = systems(&keys, true)?;
        measure(format!("in process, {count} keys, batches of {BATCH}"), 1, &mut batches)?;
    }
    Ok(())
}

/// Measures tables with more and more keys, policies with more and more limits, and keys with more and
/// more log entries and leases.
pub(crate) fn grow(effort: Effort, report: &mut Report) -> Result<()> {
    process::unpin()?;
    let largest = if effort.divisor == 1 { 7 } else { 5 };
    let mut keys_curve = curve("keys", "More keys in memory", "keys");
    for count in (3..=largest).map(|exponent| 10_usize.pow(exponent)) {
        let (keys, draws) = (bench::keys(count), bench::zipf(count, DRAWS));
        let mut systems = systems(&keys, false)?;
        systems.truncate(2);
        let row = grow_one(format!("keys: {count}"), &keys, &draws, systems, effort)?;
        keys_curve.points.push((number(count), row));
    }
    let (keys, draws) = (bench::keys(1_000), bench::zipf(1_000, DRAWS));
    let mut limits_curve = curve("limits", "More limits in a policy", "limits");
    for count in [1, 2, 4, 8, 16] {
        let limits: Vec<_> = (1..=count).map(|seconds| format!("{RATE}/{seconds}s")).collect();
        let limiter = Box::new(tollgate(&limits.join("; "), keys.len())?);
        let systems: Vec<System> = vec![("tollgate".to_owned(), limiter)];
        let row = grow_one(format!("limits: {count}"), &keys, &draws, systems, effort)?;
        limits_curve.points.push((count, row));
    }
    // All are used by the first checks, so that the others are denied.
    let logs = curve("log", "Denials by a longer log", "entries");
    let logs = grow_key(logs, |entries| format!("{entries}/h log"), &keys[..1], effort)?;
    let leases = curve("leases", "Denials beside more held leases", "leases");
    let limit = |leases| format!("{leases} concurrent lease 1h");
    let leases = grow_key(leases, limit, &keys[..1], effort)?;
    report.growth.extend([keys_curve, limits_curve, logs, leases]);
    Ok(())
}

fn curve(name: &'static str, title: &'static str, unit: &'static str) -> Curve {
    Curve { name, title, unit, points: Vec::new() }
}

/// Measures checks of one key under limits of growing size.
fn grow_key(
    mut curve: Curve,
    limit: impl Fn(u64) -> String,
    key: &[String],
    effort: Effort,
) -> Result<Curve> {
    for size in [10, 100, 1_000, 10_000] {
        let limiter = Box::new(tollgate(&limit(size), 1)?);
        let systems: Vec<System> = vec![("tollgate".to_owned(), limiter)];
        let name = format!("{}: {size}", curve.unit);
        let row = grow_one(name, key, &vec![0; DRAWS], systems, effort)?;
        curve.points.push((size, row));
    }
    Ok(curve)
}

fn grow_one(
    name: String,
    keys: &[String],
    draws: &[usize],
    mut systems: Vec<System>,
    effort: Effort,
) -> Result<Row> {
    let checks = DRAWS / effort.divisor;
    for (_, limiter) in &systems {
        black_box(limiter.check_all(keys, &draws[..checks]));
    }
    Row::measure(name, effort.rounds, &mut systems, |limiter| {
        measure(&**limiter, keys, draws, 1, checks)
    })
}

/// Runs `checks` checks on each of `threads` threads.
fn measure(
    limiter: &dyn KeyedLimiter,
    keys: &[String],
    draws: &[usize],
    threads: usize,
    checks: usize,
) -> Result<Sample> {
    let clock = Clock::system();
    let (start, cpu) = (clock.now(), own_cpu_ns()?);
    thread::scope(|scope| {
        for thread in 0..threads {
            let first = thread * draws.len() / threads;
            let (end, begin) = (&draws[first..], &draws[..first]);
            scope.spawn(move || {
                let count = checks.min(end.len());
                black_box(limiter.check_all(keys, &end[..count]));
                black_box(limiter.check_all(keys, &begin[..checks - count]));
            });
        }
    });
    let elapsed = clock.now().duration_since(start).get();
    let all = number(threads * checks);
    let cpu_ps = (own_cpu_ns()? - cpu) * 1_000 / all;
    Ok(Sample { rate: ratio(all * 10_000, elapsed), cpu_ps })
}
