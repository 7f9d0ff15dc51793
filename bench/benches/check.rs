//! A single keyed check, clock included, beside governor and rate-net in the same run.
#![expect(clippy::ptr_arg, reason = "governor's table is asked by `&String`")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tollgate::{Key, MemoryLimiter, Policy};

/// How many draws a thread goes around.
const DRAWS: usize = 1 << 20;
/// Tokens a second, and burst: most checks are admitted, the hottest keys are denied now and then.
const RATE: u32 = 1_000;

/// A limiter under test: whether a key is admitted. Keys are `String`s, as governor's table has
/// them.
trait Peer: Sync {
    fn check(&self, key: &String) -> bool;
}

struct Tollgate(MemoryLimiter, Policy);

impl Peer for Tollgate {
    fn check(&self, key: &String) -> bool {
        Key::new(key).is_ok_and(|key| self.0.check(&self.1, key).allowed())
    }
}

struct Governor(governor::DefaultKeyedRateLimiter<String>);

impl Peer for Governor {
    fn check(&self, key: &String) -> bool {
        self.0.check_key(key).is_ok()
    }
}

struct RateNet(rate_net::RateLimiter);

impl Peer for RateNet {
    fn check(&self, key: &String) -> bool {
        self.0.check(key).is_allow()
    }
}

/// Runs `iterations` checks on each of `threads` threads; the time of the slowest.
fn run(
    peer: &dyn Peer,
    keys: &[String],
    draws: &[usize],
    threads: usize,
    iterations: u64,
) -> Duration {
    std::thread::scope(|scope| {
        let work = |thread: usize| {
            move || {
                let from = thread * draws.len() / threads;
                let mut order = draws.iter().cycle().skip(from);
                let mut admitted = 0_u64;
                #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
                let start = std::time::Instant::now();
                for _ in 0..iterations {
                    let index = order.next().copied().unwrap_or(0);
                    admitted += u64::from(peer.check(&keys[index]));
                }
                black_box(admitted);
                start.elapsed()
            }
        };
        let all: Vec<_> = (0..threads).map(|n| scope.spawn(work(n))).collect();
        all.into_iter().filter_map(|x| x.join().ok()).max().unwrap_or_default()
    })
}

fn checks(criterion: &mut Criterion) {
    for count in [1_000, 1_000_000] {
        let keys = bench::keys(count);
        let draws = bench::zipf(count, DRAWS);
        let rate = NonZeroU32::new(RATE).unwrap_or(NonZeroU32::MIN);
        let policy: Result<Policy, _> = format!("{RATE}/s").parse();
        let Ok(policy) = policy else { return };
        let peers: [(&str, Box<dyn Peer>); 3] = [
            (
                "tollgate",
                Box::new(Tollgate(MemoryLimiter::builder().max_keys(2 * count).build(), policy)),
            ),
            (
                "governor",
                Box::new(Governor(governor::RateLimiter::keyed(governor::Quota::per_second(rate)))),
            ),
            ("rate-net", Box::new(RateNet(rate_net::RateLimiter::per_second(RATE)))),
        ];
        for (_, peer) in &peers {
            // Every key is known before time is taken.
            keys.iter().for_each(|key| assert!(peer.check(key)));
        }
        for threads in [1, 2] {
            let mut group = criterion.benchmark_group(format!("{count} keys, {threads} threads"));
            for (name, peer) in &peers {
                group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
                    bencher.iter_custom(|bencher| run(&**peer, &keys, &draws, threads, bencher));
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
