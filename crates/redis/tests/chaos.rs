//! A way to the server that breaks in every manner, under load: what was told is what was charged.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use support::{check, open_with, policy, remaining, until};
use tollgate_redis::RedisOptions;
use tollgate_testkit::{Proxy, Server};

const CALLERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_is_what_was_charged() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let call_timeout = Duration::from_millis(100);
    let store = open_with(&proxy.url(), |x| RedisOptions { call_timeout, ..x });
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let is_over = Arc::new(AtomicBool::new(false));
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..CALLERS {
        let (store, policy, is_over) = (store.clone(), policy.clone(), Arc::clone(&is_over));
        tasks.spawn(async move {
            let (mut definite, mut unknown) = (0, 0);
            let key = format!("{caller}:key");
            while !is_over.load(Ordering::Relaxed) {
                match check(&store, &policy, key.as_bytes()).await {
                    Ok(value) => definite += u64::from(value.allowed),
                    Err(error) if error.is_outcome_unknown() => unknown += 1,
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
            (key, definite, unknown)
        });
    }
    proxy.only(&["EVALSHA"]);
    for round in 0..40 {
        match round % 8 {
            0 => proxy.cut_before(3),
            1 => proxy.cut_after_execution(5),
            2 => proxy.split_bytes(true),
            3 => proxy.reset_connections(),
            4 => proxy.replace_reply(2, "-LOADING Redis is loading the dataset in memory", false),
            5 => proxy.delay(Duration::from_millis(20)),
            6 => proxy.blackhole(true),
            _ => {
                server.command(&["SCRIPT", "FLUSH"]);
            }
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
        if round % 2 == 1 {
            proxy.clear_faults();
        }
    }
    proxy.clear_faults();
    is_over.store(true, Ordering::Relaxed);
    let told = tasks.join_all().await;
    // Whatever is still on its way arrives.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut sum = (0, 0);
    for (key, definite, unknown) in told {
        until("an answer", async || check(&store, &policy, key.as_bytes()).await.is_ok()).await;
        let charged = 1_000_000 - remaining(&store, &policy, key.as_bytes()).await - 1;
        let told = definite..=definite + unknown;
        assert!(told.contains(&charged), "{charged} charged, told {told:?}: {:?}", store.stats());
        sum = (sum.0 + definite, sum.1 + unknown);
    }
    let stats = store.stats();
    assert!(sum.0 > 1_000 && sum.1 > 0 && stats.reconnects > 5, "{sum:?} {stats:?}");
    assert_eq!(stats.unknown_outcomes, sum.1);
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}
