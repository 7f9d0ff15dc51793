//! A single check of a key, including the clock, beside governor and rate-net in the same run.
#![expect(clippy::ptr_arg, reason = "governor's table is queried by `&String`")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tollgate::{Key, MemoryLimiter, Policy};

/// How many keys are drawn in advance; threads repeat them.
const DRAWS: usize = 1 << 20;
/// The rate per second, and the burst: most checks are admitted, the hottest keys are sometimes
/// denied.
const RATE: u32 = 1_000;

/// A limiter under test.
trait KeyedLimiter: Sync {
    fn check(&self, key: &String) -> bool;
}

struct Tollgate(MemoryLimiter, Policy);

impl KeyedLimiter for Tollgate {
    fn check(&self, key: &String) -> bool {
        Key::new(key).is_ok_and(|key| self.0.check(&self.1, key).allowed)
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

/// Runs `iterations` checks on each of `threads` threads; returns the time of the slowest.
#[expect(clippy::expect_used, reason = "a panic of a thread ends the benchmark")]
fn run(
    limiter: &dyn KeyedLimiter,
    keys: &[String],
    draws: &[usize],
    threads: usize,
    iterations: u64,
) -> Duration {
    std::thread::scope(|scope| {
        let work = |thread: usize| {
            move || {
                let first = thread * draws.len() / threads;
                let order = draws.iter().cycle().skip(first);
                let mut admitted = 0_u64;
                #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
                let start = std::time::Instant::now();
                for (_, index) in (0..iterations).zip(order) {
                    admitted += u64::from(limiter.check(&keys[*index]));
                }
                black_box(admitted);
                start.elapsed()
            }
        };
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(work(thread))).collect();
        let times = handles.into_iter().map(|handle| handle.join().expect("a thread panicked"));
        times.max().expect("at least one thread")
    })
}

#[expect(clippy::expect_used, reason = "the rate is valid")]
fn limiters(keys: usize) -> [(&'static str, Box<dyn KeyedLimiter>); 3] {
    let limiter = MemoryLimiter::builder().max_keys(2 * keys).max_bytes(usize::MAX).build();
    let policy: Policy = format!("{RATE}/s").parse().expect("a valid limit");
    let quota = governor::Quota::per_second(NonZeroU32::new(RATE).expect("a rate above 0"));
    [
        ("tollgate", Box::new(Tollgate(limiter, policy))),
        ("governor", Box::new(Governor(governor::RateLimiter::keyed(quota)))),
        ("rate-net", Box::new(RateNet(rate_net::RateLimiter::per_second(RATE)))),
    ]
}

fn checks(criterion: &mut Criterion) {
    for count in [1_000, 1_000_000] {
        let keys = bench::keys(count);
        let draws = bench::zipf(count, DRAWS);
        let limiters = limiters(count);
        for (_, limiter) in &limiters {
            // Every key is known before time is measured.
            keys.iter().for_each(|key| assert!(limiter.check(key)));
        }
        for threads in [1, 2] {
            let mut group = criterion.benchmark_group(format!("{count} keys, {threads} threads"));
            for (name, limiter) in &limiters {
                group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                    bencher.iter_custom(|iterations| {
                        run(&**limiter, &keys, &draws, threads, iterations)
                    });
                });
            }
            group.finish();
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).measurement_time(Duration::from_secs(3));
    targets = checks
}
criterion_main!(benches);
