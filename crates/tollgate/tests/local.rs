//! Limiters that decide with their shares while a real server is unavailable.
#![cfg(feature = "redis")]
#![allow(clippy::panic, clippy::print_stdout, clippy::unwrap_used, reason = "a test")]

use std::time::Duration;

use tokio::time::Instant;
use tollgate::{Ban, Cost, Decision, Key, Limiter, OnStoreError, Policy, Reason, Source};
use tollgate_testkit::Server;

const DEADLINE: Duration = Duration::from_secs(1);
/// After this time, processes that have started have shares.
const SETTLING: Duration = Duration::from_millis(3_200);

fn named(name: &str, limits: &str) -> Policy {
    let limits = limits.split("; ").map(|limit| limit.parse().unwrap());
    Policy::new(name, limits).unwrap()
}

fn key(key: &str) -> Key<'_> {
    Key::new(key).unwrap()
}

/// Opens limiters, each of which stands for a process, and waits until all have shares.
async fn open(server: &Server, count: usize) -> Vec<Limiter> {
    let mut limiters = Vec::new();
    for _ in 0..count {
        limiters.push(Limiter::builder().deadline(DEADLINE).open(&server.url()).await.unwrap());
    }
    tokio::time::sleep(SETTLING).await;
    for limiter in &limiters {
        assert_eq!(limiter.stats().members, Some(count), "{:?}", limiter.stats());
    }
    limiters
}

/// Checks a cost of 1 this many times in each process; returns how often it was admitted.
async fn admitted(limiters: &[Limiter], policy: &Policy, name: &str, times: usize) -> Vec<usize> {
    let mut admitted = vec![0; limiters.len()];
    for _ in 0..times {
        for (limiter, count) in limiters.iter().zip(&mut admitted) {
            *count += usize::from(limiter.check(policy, key(name)).await.allowed);
        }
    }
    admitted
}

async fn wait_until_charged(limiters: &[Limiter]) {
    let start = Instant::now();
    while limiters.iter().any(|limiter| limiter.stats().pending_keys > 0) {
        assert!(start.elapsed() < Duration::from_secs(20), "the store was not charged");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn peek(limiter: &Limiter, policy: &Policy, name: &str) -> Decision {
    limiter.peek(policy, key(name), Cost::ONE).await
}

#[test]
fn the_default_answer_is_local() {
    assert_eq!(named("a", "1/s").on_store_error(), OnStoreError::Local);
}

#[tokio::test]
async fn shares_add_up_to_each_limit_and_are_charged_when_the_server_is_back() {
    let server = Server::with(|config| config.line("appendonly yes"));
    let limiters = open(&server, 3).await;
    let policies = [
        named("fixed", "10/d fixed"),
        named("log", "10/d log"),
        named("bucket", "10/d"),
        named("queue", "10/d queue 9"),
        named("sliding", "10/d sliding"),
        named("buckets", "10/d sliding by 1h"),
        named("several", "10/d log; 20/d burst 10; 12/d fixed"),
    ];
    let warm = peek(&limiters[0], &policies[0], "a").await;
    assert!(warm.allowed && !warm.degraded);
    server.kill();
    for policy in &policies {
        let counts = admitted(&limiters, policy, "a", 20).await;
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [3, 3, 4], "{}", policy.name());
        let denied = limiters[0].check(policy, key("a")).await;
        assert!(denied.degraded && denied.source == Source::Fallback, "{denied:?}");
        assert!(denied.reason == Reason::Limit && denied.retry_after.is_some(), "{denied:?}");
    }
    server.restart();
    wait_until_charged(&limiters).await;
    for policy in &policies {
        let used = limiters[1].inspect(policy, key("a")).await.unwrap();
        let used: Vec<_> = used.limits.iter().map(|limit| limit.used).collect();
        assert_eq!(used, vec![10; policy.limits().len()], "{}", policy.name());
        assert!(!peek(&limiters[1], policy, "a").await.degraded);
        assert_eq!(admitted(&limiters[1..2], policy, "b", 20).await, [10], "{}", policy.name());
    }
    for limiter in &limiters {
        assert_eq!(limiter.stats().not_charged_back, 0);
    }
    assert_eq!(server.keys_without_ttl("tollgate"), Vec::<String>::new());
}

#[tokio::test]
async fn a_key_that_the_store_has_denied_gets_no_share() {
    let server = Server::start();
    let limiter = &open(&server, 1).await[0];
    let local = named("local", "1/d fixed");
    let open = named("open", "1/d fixed").with_on_store_error(OnStoreError::Allow);
    for policy in [&local, &open] {
        assert_eq!(admitted(std::slice::from_ref(limiter), policy, "a", 3).await, [1]);
    }
    server.kill();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    for _ in 0..3 {
        let denied = limiter.check(&local, key("a")).await;
        assert!(!denied.allowed && denied.retry_after.is_some());
        assert!(limiter.check(&open, key("a")).await.allowed);
    }
}

#[tokio::test]
async fn blocks_and_bans_that_this_process_has_seen_still_deny() {
    let server = Server::start();
    let limiters = open(&server, 1).await;
    let limiter = &limiters[0];
    let policy = named("a", "9/d");
    for name in ["seen", "set", "lifted"] {
        let _ = limiter.block(&policy, key(name), Some(Duration::from_secs(600))).await.unwrap();
    }
    let _ = limiter.unblock(&policy, key("lifted")).await.unwrap();
    let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3_600));
    let banning = named("b", "1/min").with_ban(Ban::new(1, second, hour).unwrap());
    assert!(limiter.check(&banning, key("banned")).await.allowed);
    let denied = limiter.check(&banning, key("banned")).await;
    assert_eq!((denied.reason, denied.banned_for()), (Reason::Limit, Some(hour.into())));
    server.kill();
    let denied = limiter.check(&banning, key("banned")).await;
    assert_eq!((denied.reason, denied.degraded), (Reason::Blocked, true));
    // A share counts no denials.
    for reason in [Reason::Limit; 4] {
        assert_eq!(limiter.check(&banning, key("another")).await.reason, reason);
    }
    for (name, reason) in [("seen", Reason::Blocked), ("lifted", Reason::Limit)] {
        let decision = limiter.check(&policy, key(name)).await;
        assert_eq!((decision.reason, decision.degraded), (reason, true), "{name}");
    }
}

#[tokio::test]
async fn leases_are_shared_and_those_of_the_store_count() {
    let server = Server::with(|config| config.line("appendonly yes"));
    let limiters = open(&server, 2).await;
    let policy = named("slots", "4 concurrent lease 10min");
    let held = limiters[0].check(&policy, key("a")).await.lease.unwrap();
    server.kill();
    // The share is two places, and one is taken.
    let leases = async |limiter: &Limiter| {
        let mut leases = Vec::new();
        for _ in 0..4 {
            let decision = limiter.check(&policy, key("a")).await;
            leases.extend(decision.lease.filter(|_| decision.allowed));
        }
        leases
    };
    let first = leases(&limiters[0]).await;
    assert_eq!(first.len(), 1);
    assert_eq!(leases(&limiters[1]).await.len(), 2);
    let released = limiters[0].release(&policy, key("a"), first[0]).await.unwrap();
    assert!(released.changed && released.degraded);
    assert_eq!(leases(&limiters[0]).await.len(), 1);
    server.restart();
    wait_until_charged(&limiters).await;
    let inspection = limiters[0].inspect(&policy, key("a")).await.unwrap();
    let leases = &inspection.limits[0].leases;
    assert_eq!(leases.len(), 4, "{inspection:?}");
    assert!(leases.iter().any(|lease| lease.id == held) && inspection.limits[0].used == 4);
    let last = limiters[1].release(&policy, key("a"), held).await.unwrap();
    assert!(last.changed && !last.degraded);
}

/// Nothing is left to charge, although the lease of the store is still in use.
#[tokio::test]
async fn a_key_whose_leases_were_all_released_is_not_pending() {
    let server = Server::with(|config| config.line("appendonly yes"));
    let limiters = open(&server, 1).await;
    let limiter = &limiters[0];
    let policy = named("slots", "4 concurrent lease 10min");
    let lease = async || limiter.check(&policy, key("a")).await.lease.unwrap();
    let held = lease().await;
    server.kill();
    let local = lease().await;
    assert!(limiter.release(&policy, key("a"), local).await.unwrap().changed);
    server.restart();
    wait_until_charged(&limiters).await;
    let inspection = limiter.inspect(&policy, key("a")).await.unwrap();
    let leases = inspection.limits[0].leases.iter().map(|lease| lease.id);
    assert_eq!(leases.collect::<Vec<_>>(), [held]);
    assert_eq!(limiter.stats().not_charged_back, 0);
}

#[tokio::test]
async fn a_key_that_is_denied_often_costs_the_server_one_call_a_second() {
    let server = Server::start();
    let limiter = &open(&server, 1).await[0];
    let policy = named("a", "1/d fixed");
    assert!(limiter.check(&policy, key("hot")).await.allowed);
    let calls = || {
        let stats = server.command(&["INFO", "commandstats"]).text();
        let line =
            stats.lines().find(|line| line.starts_with("cmdstat_fcall:")).unwrap().to_owned();
        let calls = line.split_once("calls=").unwrap().1.split(',').next().unwrap();
        calls.parse::<u64>().unwrap()
    };
    let (before, start, mut checks) = (calls(), Instant::now(), 0_u64);
    while start.elapsed() < Duration::from_secs(3) {
        for _ in 0..1_000 {
            let decision = limiter.check(&policy, key("hot")).await;
            assert!(!decision.allowed && decision.retry_after.is_some());
        }
        checks += 1_000;
    }
    let calls = calls() - before;
    println!("{checks} checks, {calls} calls");
    assert!(calls <= 5, "{calls} calls in three seconds");
    assert!(checks > 10 * calls && limiter.stats().denied_from_memory >= checks - calls);
    // Another process resets the key.
    let other = Limiter::open(&server.url()).await.unwrap();
    let _ = other.reset(&policy, key("hot")).await.unwrap();
    let is_admitted = async || limiter.check(&policy, key("hot")).await.allowed;
    let start = Instant::now();
    while !is_admitted().await {
        assert!(start.elapsed() < Duration::from_secs(3), "the reset was not seen");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("the reset was seen after {:?}", start.elapsed());
}

#[tokio::test]
async fn a_heartbeat_that_cannot_be_written_is_reported() {
    let server = Server::start();
    server.command(&["ACL", "SETUSER", "default", "-hset"]);
    let limiter = Limiter::builder().deadline(DEADLINE).open(&server.url()).await.unwrap();
    let start = Instant::now();
    let failure = loop {
        match limiter.stats().membership_failure {
            Some(failure) => break failure,
            None => tokio::time::sleep(Duration::from_millis(10)).await,
        }
        assert!(start.elapsed() < Duration::from_secs(10));
    };
    assert!(failure.to_string().contains("hset"), "{failure}");
    assert_eq!(limiter.stats().members, None);
}
