//! Several limiters with leases on a real server.
#![cfg(feature = "redis")]
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{
    Cost, Limiter, LimiterStats, ManualClock, MemoryLimiter, Micros, OnStoreError, Policy, Source,
    Timestamp,
};
use tollgate_testkit::{Sentinel, Server};

const PROCESSES: usize = 10;

/// Checks one key from several limiters at once, each at its own rate; returns when requests were
/// admitted, and the time that it took.
async fn load(limiters: &[Limiter], policy: &Policy, time: Duration) -> (Vec<Micros>, Duration) {
    let start = Instant::now();
    let tasks = limiters.iter().zip(1..).map(|(limiter, rank)| {
        let (limiter, policy) = (limiter.clone(), policy.clone());
        tokio::spawn(async move {
            let mut admitted = Vec::new();
            while start.elapsed() < time {
                for _ in 0..60 / rank {
                    let decision = limiter.check(&policy, "hot").await;
                    if decision.allowed {
                        admitted.push(Micros::from(start.elapsed()));
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            admitted
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut admitted = Vec::new();
    for task in tasks {
        admitted.extend(task.await.unwrap());
    }
    admitted.sort_unstable();
    (admitted, start.elapsed())
}

/// How many requests a single limiter would not have admitted at these times.
fn excess(admitted: &[Micros], limits: &str) -> usize {
    let clock = ManualClock::at(Timestamp::from_micros(1_000_000_000));
    let limiter = MemoryLimiter::builder().clock(clock.clone()).build();
    let (policy, mut now) = (Policy::named("hot", limits).unwrap(), Micros::ZERO);
    let is_over = |time: &&Micros| {
        clock.advance(Micros::new(time.get() - now.get()));
        now = **time;
        !limiter.check(&policy, "hot").allowed
    };
    admitted.iter().filter(is_over).count()
}

async fn open(url: &str) -> Vec<Limiter> {
    let mut limiters = Vec::new();
    for _ in 0..PROCESSES {
        let builder = Limiter::builder().deadline(Duration::from_secs(5));
        let limiter = builder.open(url).await.unwrap();
        limiter.as_redis().unwrap().ready().await.unwrap();
        limiters.push(limiter);
    }
    limiters
}

fn sum(limiters: &[Limiter], count: impl Fn(&LimiterStats) -> u64) -> u64 {
    limiters.iter().map(|limiter| count(&limiter.stats())).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hot_key_is_decided_from_leases_and_never_exceeded() {
    let server = Server::start();
    // Any time of a fixed window touches one window more.
    for (limits, rate, burst) in
        [("4000/s", 4_000, 4_000), ("20000/s", 20_000, 20_000), ("6000/3s fixed", 2_000, 12_000)]
    {
        let policy = Policy::named("hot", limits).unwrap().leased(None).unwrap();
        let limiters = open(&server.url()).await;
        let (admitted, elapsed) = load(&limiters, &policy, Duration::from_secs(3)).await;
        if !limits.contains("fixed") {
            assert_eq!(excess(&admitted, limits), 0, "{limits}");
        }
        let admitted = u64::try_from(admitted.len()).unwrap();
        let bound = burst + rate * u64::try_from(elapsed.as_millis()).unwrap() / 1_000;
        let leased = sum(&limiters, |stats| stats.leased_allowed + stats.leased_denied);
        let requests = sum(&limiters, |stats| stats.lease_requests);
        println!("{limits}: {admitted} admitted, {leased} checks from {requests} charges");
        assert!(admitted <= bound, "{limits}: {admitted} of at most {bound}");
        assert!(
            requests > 0 && 10 * requests < leased,
            "{limits}: {requests} charges, {leased} leased"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_on_a_key_ends_its_lease() {
    let server = Server::start();
    let policy = Policy::named("hot", "1000/min fixed").unwrap().leased(None).unwrap();
    let limiter = open(&server.url()).await.remove(0);
    let checks = async || {
        for _ in 0..200 {
            let decision = limiter.check(&policy, "k").await;
            if decision.source == Source::Lease {
                return decision;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("no lease")
    };
    assert!(checks().await.allowed);
    let _ = limiter.block(&policy, "k", None).await.unwrap();
    assert!(!limiter.check(&policy, "k").await.allowed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_check_is_decided_at_once_only_with_quota_of_this_process() {
    let server = Server::start();
    let exact = Policy::named("exact", "1000/min fixed").unwrap();
    let leased = Policy::named("leased", "1000/min fixed").unwrap().leased(None).unwrap();
    let memory = Limiter::memory();
    assert!(memory.check_now(&exact, "k", Cost::ONE).unwrap().allowed);
    let limiter = open(&server.url()).await.remove(0);
    let decision = async |policy| {
        // Enough requests for a lease, and time for its charge.
        for _ in 0..50 {
            let _ = limiter.check(policy, "k").await;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        limiter.check_now(policy, "k", Cost::ONE)
    };
    assert_eq!(decision(&exact).await, None);
    let mut checks = 0;
    let spent = loop {
        checks += 50;
        if let Some(spent) = decision(&leased).await {
            break spent;
        }
        // A busy machine takes longer.
        assert!(checks < 500, "no lease after {checks} checks");
    };
    assert!(spent.allowed && spent.source == Source::Lease, "{spent:?}");
    let inspection = limiter.inspect(&leased, "k").await.unwrap();
    let held = inspection.held.unwrap();
    assert!(held.remaining > 0 && held.ends_after < leased.hold().unwrap(), "{held:?}");
    // The limits count it as used.
    assert_eq!(inspection.limits[0].used, checks + 1 + held.remaining);
    assert_eq!(limiter.inspect(&exact, "k").await.unwrap().held, None);
    // Neither another key nor a cost that is not held, nor a key on a list.
    assert_eq!(limiter.check_now(&leased, "other", Cost::ONE), None);
    assert_eq!(limiter.check_now(&leased, "k", Cost::from(1_000)), None);
    let denied = leased.clone().with_deny_list(["k"].into_iter().collect());
    assert_eq!(limiter.check_now(&denied, "k", Cost::ONE), None);
    assert!(!limiter.check(&denied, "k").await.allowed);
}

/// The store fails in the middle, and a replica takes over, which may lack the last charges.
#[tokio::test(flavor = "multi_thread")]
async fn a_failover_adds_at_most_the_charges_that_it_loses() {
    let sentinel = Sentinel::start();
    let policy = Policy::named("hot", "4000/s").unwrap().leased(None).unwrap();
    let policy = policy.with_on_store_error(OnStoreError::Deny);
    let limiters = open(&sentinel.url()).await;
    let loads = load(&limiters, &policy, Duration::from_secs(7));
    let failure = async {
        tokio::time::sleep(Duration::from_secs(2)).await;
        sentinel.kill_primary();
    };
    let ((admitted, elapsed), ()) = tokio::join!(loads, failure);
    let excess = u64::try_from(excess(&admitted, "4000/s")).unwrap();
    println!("{} admitted, {excess} above the limit, in {elapsed:?}", admitted.len());
    // The replica is some milliseconds behind, and has what was charged a hold time before.
    let lost = 4_000 * policy.hold().unwrap().get() / 1_000_000;
    assert!(excess <= lost, "{excess}, of which {lost} can be lost");
    let failed = sum(&limiters, |stats| stats.degraded_denied);
    let after = sum(&limiters, |stats| stats.leased_allowed);
    assert!(failed > 0 && after > 0 && admitted.len() > 3 * 4_000, "{failed} failed");
}
