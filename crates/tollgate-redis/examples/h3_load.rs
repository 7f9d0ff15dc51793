use std::time::Instant;
use tollgate_core::{Check, Cost, Policy, Request, Verb};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_store::Store;
#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    let connections: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let store =
        RedisStore::open(&url, RedisOptions { connections, ..RedisOptions::default() }).unwrap();
    store.ready().await.unwrap();
    let policy: Policy = "1000000/s burst 1000000".parse().unwrap();
    for callers in [1usize, 2, 8, 32, 64, 256, 1024] {
        let before = store.stats();
        let start = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        let seconds = 2.0;
        for caller in 0..callers {
            let (store, policy) = (store.clone(), policy.clone());
            tasks.spawn(async move {
                let mut times = Vec::new();
                let mut n = 0u64;
                while start.elapsed().as_secs_f64() < seconds {
                    let key = format!("key:{caller}:{}", n % 100);
                    let checks = [Check { policy: &policy, key: key.as_bytes(), cost: Cost::ONE }];
                    let request = [Request {
                        verb: Verb::Check { lease: None },
                        checks: &checks,
                        request_id: None,
                    }];
                    let t = Instant::now();
                    store.decide(&request).await.pop().unwrap().unwrap();
                    times.push(t.elapsed().as_micros() as u64);
                    n += 1;
                }
                times
            });
        }
        let mut all: Vec<u64> = tasks.join_all().await.into_iter().flatten().collect();
        all.sort_unstable();
        let after = store.stats();
        let q = |p: f64| all[((all.len() - 1) as f64 * p) as usize];
        println!(
            "{callers:5} callers {:8.0}/s p50 {} p99 {} us; {:.1} a call",
            all.len() as f64 / seconds,
            q(0.5),
            q(0.99),
            (after.requests - before.requests) as f64 / (after.calls - before.calls) as f64
        );
    }
}
