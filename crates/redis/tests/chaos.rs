//! Faults of the connection under load: the answers agree with the charges.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use support::{check, open_with, policy, remaining};
use tollgate_redis::RedisOptions;
use tollgate_state::StoreError;
use tollgate_testkit::{Proxy, Server, wait_until};

const CLIENTS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_agree_with_charges_under_connection_faults() {
    let server = Server::start();
    let proxy = Proxy::before(&server);
    let call_timeout = Duration::from_millis(100);
    let store = open_with(&proxy.url(), |options| RedisOptions { call_timeout, ..options });
    store.ready().await.unwrap();
    let policy = policy("1000000/d fixed");
    let stop = Arc::new(AtomicBool::new(false));
    let mut clients = tokio::task::JoinSet::new();
    for client in 0..CLIENTS {
        let (store, policy, stop) = (store.clone(), policy.clone(), Arc::clone(&stop));
        clients.spawn(async move {
            let (mut admitted, mut unknown) = (0, 0);
            let key = format!("{client}:key");
            while !stop.load(Ordering::Relaxed) {
                match check(&store, &policy, key.as_bytes()).await {
                    Ok(decision) => admitted += u64::from(decision.allowed),
                    Err(error) if error.is_outcome_unknown() => unknown += 1,
                    Err(_) => tokio::time::sleep(Duration::from_millis(2)).await,
                }
            }
            (key, admitted, unknown)
        });
    }
    // Requests of the test itself can have unknown outcomes, too.
    let unknown_probes = AtomicU64::new(0);
    let is_answered = async |key: &str| {
        let result = check(&store, &policy, key.as_bytes()).await;
        let is_unknown = result.as_ref().is_err_and(StoreError::is_outcome_unknown);
        unknown_probes.fetch_add(u64::from(is_unknown), Ordering::Relaxed);
        result.is_ok()
    };
    proxy.only(&["FCALL"]);
    for round in 0..16 {
        match round % 8 {
            0 => proxy.cut_before(3),
            1 => proxy.cut_after_execution(5),
            2 => proxy.split_bytes(true),
            3 => proxy.reset_connections(),
            4 => proxy.replace_reply(2, "-LOADING Redis is loading the dataset in memory", false),
            5 => proxy.delay(Duration::from_millis(20)),
            6 => proxy.blackhole(true),
            _ => {
                server.command(&["FUNCTION", "FLUSH"]);
            }
        }
        tokio::time::sleep(Duration::from_millis(40)).await;
        if round % 2 == 1 {
            proxy.clear_faults();
            // The next fault meets a connection.
            wait_until("an answer", async || is_answered("probe").await).await;
        }
    }
    proxy.clear_faults();
    stop.store(true, Ordering::Relaxed);
    let counts = clients.join_all().await;
    // Delayed requests arrive at the server.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut sum = (0, unknown_probes.load(Ordering::Relaxed));
    for (key, admitted, unknown) in counts {
        let probes = unknown_probes.load(Ordering::Relaxed);
        wait_until("an answer", async || is_answered(&key).await).await;
        let unknown = unknown + unknown_probes.load(Ordering::Relaxed) - probes;
        let charged = 1_000_000 - remaining(&store, &policy, key.as_bytes()).await - 1;
        let expected = admitted..=admitted + unknown;
        assert!(expected.contains(&charged), "{charged} of {expected:?}: {:?}", store.stats());
        sum = (sum.0 + admitted, sum.1 + unknown);
    }
    let stats = store.stats();
    assert!(sum.0 > 1_000 && sum.1 > 0 && stats.reconnects > 5, "{sum:?} {stats:?}");
    // The charges of answers that came too late for the caller were taken back.
    assert!(stats.unknown_outcomes <= sum.1, "{sum:?} {stats:?}");
    assert_eq!(server.keys_without_ttl(""), Vec::<String>::new());
}
