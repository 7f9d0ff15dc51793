//! The limiter on a real Redis or Valkey: it decides as the in-memory limiter, and within its deadline
//! while the server is unavailable.
#![cfg(feature = "redis")]
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test")]

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tollgate::{
    Answer, Check, Cost, Decision, FailureKind, FlushError, Key, Limiter, LimiterBuilder,
    ManualClock, Micros, OnStoreError, Operation, Policy, Reason, RedisOptions, RedisStore,
    Request, RequestError, Source, StoreError, Timestamp, random_id,
};
use tollgate_testkit::{Cluster, Sentinel, Server, wait_until};

const CHECK: Operation = Operation::Check { lease: None };

fn policy(limits: &str) -> Policy {
    limits.parse().unwrap()
}

fn key() -> Key<'static> {
    Key::new("user:42").unwrap()
}

/// Returns a builder with deadlines that are long enough for a busy machine.
fn builder() -> LimiterBuilder {
    let deadline = Duration::from_secs(5);
    Limiter::builder().deadline(deadline).connect_timeout(deadline)
}

async fn open(server: &Server) -> Limiter {
    builder().open(&server.url()).await.unwrap()
}

/// Opens a limiter in memory and one on the server, with the same clock.
async fn both(server: &Server) -> (ManualClock, [Limiter; 2]) {
    let clock = ManualClock::at(Timestamp::from_micros(1_763_650_000_000_000));
    let builder = builder().clock(clock.clone());
    let limiters =
        [builder.clone().open("memory").await.unwrap(), builder.open(&server.url()).await.unwrap()];
    (clock, limiters)
}

#[tokio::test]
async fn a_batch_is_decided_as_in_memory() {
    let server = Server::start();
    let (_, [memory, redis]) = both(&server).await;
    let two = policy("2/min");
    let listed = policy("5/min").with_deny_list(["eve"].into_iter().collect());
    let in_flight = policy("1 concurrent lease 60s");
    let check = |policy, key, cost| Check { policy, key, cost: Cost::new(cost).unwrap() };
    let (user, eve) = (check(&two, b"user:42", 1), check(&listed, b"eve", 1));
    let (bob, lease) = (check(&listed, b"bob", 2), check(&in_flight, b"user:42", 1));
    let batch = [
        (CHECK, vec![user]),
        (CHECK, vec![eve]),
        (CHECK, vec![user, bob]),
        (CHECK, vec![user]),
        (Operation::Take, vec![check(&two, b"user:42", 0)]),
        (CHECK, vec![check(&listed, b"carol", 2), eve]),
        (Operation::Refund { time: None }, vec![user]),
        (CHECK, vec![user]),
        (Operation::Acquire { lease: random_id() }, vec![lease]),
    ];
    let requests: Vec<_> = batch
        .iter()
        .map(|(operation, checks)| Request { operation: *operation, checks, request_id: None })
        .collect();
    let in_memory = memory.decide_batch(&requests).await;
    assert_eq!(in_memory.len(), batch.len());
    assert_eq!(in_memory, redis.decide_batch(&requests).await);
    let is_allowed = |answer: &Result<Answer, _>| answer.as_ref().map(Answer::allowed).ok();
    let allowed: Vec<_> = in_memory.iter().map(is_allowed).collect();
    let expected = [
        Some(true),
        Some(false),
        Some(true),
        Some(false),
        None,
        Some(false),
        Some(true),
        Some(true),
        Some(true),
    ];
    assert_eq!(allowed, expected);
    assert!(redis.decide_batch(&[]).await.is_empty());
}

#[tokio::test]
async fn every_operation_decides_as_in_memory() {
    let server = Server::start();
    let (clock, [memory, redis]) = both(&server).await;
    let (lease, id) = (random_id(), random_id());
    let max_wait = Micros::from_secs(10);
    let steps = [
        ("3/s", CHECK, 2),
        ("3/s", CHECK, 2),
        ("3/s", Operation::Peek, 1),
        ("3/s", Operation::Take, 5),
        ("3/s", Operation::Reserve { id, max_wait }, 2),
        ("3/s", Operation::Cancel { id }, 0),
        ("3/s", Operation::Refund { time: None }, 1),
        ("3/s", Operation::Penalize, 2),
        ("3/s", Operation::Block { span: Some(max_wait) }, 0),
        ("3/s", CHECK, 1),
        ("3/s", Operation::Unblock, 0),
        ("3/s", Operation::Reset, 0),
        ("3/s", CHECK, 4),
        ("10/s fixed; 120/min fixed; 240/h sliding by 1m", CHECK, 7),
        ("10/s fixed; 120/min fixed; 240/h sliding by 1m", CHECK, 7),
        ("5/min log", CHECK, 5),
        ("5/min log", CHECK, 1),
        ("20/s queue 3", CHECK, 2),
        ("2 concurrent lease 60s", Operation::Acquire { lease }, 1),
        ("2 concurrent lease 60s", Operation::Renew { lease }, 0),
        ("2 concurrent lease 60s", Operation::Release { lease }, 0),
        ("2 concurrent lease 60s", Operation::Release { lease }, 0),
    ];
    for (limits, operation, cost) in steps {
        let (policy, cost) = (policy(limits), Cost::from(cost));
        clock.advance(Micros::new(123_457));
        let expected = memory.execute(operation, &policy, key(), cost).await.unwrap();
        let decision = redis.execute(operation, &policy, key(), cost).await.unwrap();
        assert_eq!(decision, expected, "{limits} {operation:?}");
        let expected = memory.inspect(&policy, key()).await.unwrap();
        let inspection = redis.inspect(&policy, key()).await.unwrap();
        assert_eq!(inspection, expected, "{limits} {operation:?}");
    }
    let stats = redis.stats();
    assert_eq!((stats.degraded_allowed, stats.degraded_denied), (0, 0), "{stats:?}");
    assert!(stats.errors.is_empty() && stats.last_failure.is_none(), "{stats:?}");
    let timed: u64 = stats.latency_buckets.iter().map(|(_, count)| count).sum();
    assert_eq!(timed, 22, "each step is timed once: {stats:?}");
    assert_eq!(server.keys_without_ttl("tollgate"), Vec::<String>::new());
}

#[tokio::test]
async fn each_operation_has_a_method() {
    let server = Server::start();
    let limiter = open(&server).await;
    let (bucket, slots) = (limiter.limit("3/h").unwrap(), policy("1 concurrent lease 60s"));
    let (one, key) = (Cost::ONE, key());
    assert!(limiter.check(&bucket, key).await.allowed);
    assert_eq!(limiter.take(&bucket, key, Cost::from(9)).await.unwrap().granted, 2);
    assert!(!limiter.peek(&bucket, key, one).await.allowed);
    let hours = Micros::from_secs(7_200);
    let reserved = limiter.reserve(&bucket, key, one, hours).await.unwrap();
    assert!(reserved.allowed && reserved.delay > Micros::ZERO);
    let id = reserved.reservation.unwrap();
    assert!(limiter.cancel(&bucket, key, id).await.unwrap().changed);
    assert_eq!(limiter.refund(&bucket, key, one, None).await.unwrap().granted, 1);
    assert_eq!(limiter.penalize(&bucket, key, Cost::from(2)).await.unwrap().granted, 2);
    assert!(limiter.block(&bucket, key, None).await.unwrap().changed);
    assert_eq!(limiter.check(&bucket, key).await.reason, Reason::Blocked);
    assert!(limiter.inspect(&bucket, key).await.unwrap().block.is_some());
    assert!(limiter.unblock(&bucket, key).await.unwrap().changed);
    assert_eq!(limiter.reset(&bucket, key).await.unwrap().remaining, 3);
    let lease = limiter.check(&slots, key).await.lease.unwrap();
    assert!(limiter.renew(&slots, key, lease).await.unwrap().changed);
    assert!(limiter.release(&slots, key, lease).await.unwrap().changed);
    assert!(!limiter.release(&slots, key, lease).await.unwrap().changed);
}

#[tokio::test]
async fn listed_checks_are_decided_without_the_store() {
    let server = Server::start();
    let (_, limiters) = both(&server).await;
    let user = policy("1/min").with_allow_list(["root"].into_iter().collect());
    let ip = policy("5/min").with_deny_list(["6.6.6.*"].into_iter().collect());
    let mut answers = [Vec::new(), Vec::new()];
    for (limiter, answers) in limiters.iter().zip(&mut answers) {
        for (user_key, ip_key) in
            [("bob", "6.6.6.1"), ("root", "1.1.1.1"), ("bob", "1.1.1.1"), ("root", "6.6.6.1")]
        {
            let checks = [
                Check { policy: &user, key: user_key.as_bytes(), cost: Cost::ONE },
                Check { policy: &ip, key: ip_key.as_bytes(), cost: Cost::ONE },
            ];
            let request = Request { operation: CHECK, checks: &checks, request_id: None };
            answers.push(limiter.decide(&request).await.unwrap().decisions);
        }
    }
    let [in_memory, on_redis] = answers;
    assert_eq!(on_redis, in_memory);
    assert_eq!(in_memory[0][1].reason, Reason::DenyList);
    let remaining = (in_memory[0][0].remaining, in_memory[2][0].remaining);
    assert_eq!(remaining, (1, 0), "the denied request was not charged");
    // A listed key needs no store.
    server.kill();
    let listed = limiters[1].check(&ip, Key::new("6.6.6.9").unwrap()).await;
    assert_eq!((listed.reason, listed.degraded), (Reason::DenyList, false));
}

#[track_caller]
fn assert_degraded(decision: &Decision, allowed: bool) {
    assert_eq!(decision.allowed, allowed);
    assert_eq!(decision.granted, u64::from(allowed));
    assert_eq!((decision.reason, decision.source), (Reason::Store, Source::Fallback));
    assert!(decision.degraded && decision.time > Timestamp::from_micros(1_763_650_000_000_000));
}

#[tokio::test]
async fn a_hanging_server_delays_no_decision_beyond_the_deadline() {
    let server = Server::start();
    // The breaker may open before the third request.
    let options = RedisOptions { breaker: false, ..RedisOptions::default() };
    // Long enough for a busy machine to refuse the third request before it is too late.
    let builder = Limiter::builder().deadline(Duration::from_millis(100)).redis_options(options);
    let limiter = builder.open(&server.url()).await.unwrap();
    let closed = policy("10/h");
    let open = policy("10/h log").with_on_store_error(OnStoreError::Allow);
    server.pause();
    let started = tokio::time::Instant::now();
    assert_degraded(&limiter.check(&closed, key()).await, false);
    assert_degraded(&limiter.check(&open, key()).await, true);
    let both = [(&open, "a"), (&closed, "b")];
    let checks = both.map(|(policy, key)| Check { policy, key: key.as_bytes(), cost: Cost::ONE });
    let request = Request { operation: CHECK, checks: &checks, request_id: None };
    let strictest = limiter.decide(&request).await.unwrap();
    strictest.decisions.iter().for_each(|decision| assert_degraded(decision, false));
    // Three deadlines, and extra time for a busy machine; less than three call timeouts.
    assert!(started.elapsed() < Duration::from_millis(1_200), "{:?}", started.elapsed());
    // Two calls are in flight; the third was not sent.
    let errors = [(FailureKind::Deadline, 2), (FailureKind::Overloaded, 1)];
    assert_eq!(limiter.stats().errors, errors.into());
    assert_eq!((limiter.stats().degraded_allowed, limiter.stats().degraded_denied), (1, 3));
    server.resume();
    wait_until("an answer", async || !limiter.check(&closed, key()).await.degraded).await;
}

#[tokio::test]
async fn the_policy_decides_while_a_killed_server_is_unavailable() {
    let server = Server::start();
    let limiter = open(&server).await;
    let api = policy("2/h").with_on_store_error(OnStoreError::Allow);
    assert!(!limiter.check(&api, key()).await.degraded);
    server.kill();
    wait_until("a failure", async || limiter.check(&api, key()).await.degraded).await;
    // Operations other than checks have no fallback and return the error.
    let error = limiter.reset(&api, key()).await.unwrap_err();
    let StoreError::Unavailable(failure) = &error else { panic!("{error:?}") };
    assert_eq!(failure.kind, FailureKind::Unreachable);
    assert!(error.to_string().contains("check its address and that it is running"), "{error}");
    assert_eq!(limiter.stats().last_failure.as_ref(), Some(failure));
    assert!(limiter.inspect(&api, key()).await.is_err());
    // An invalid request is an error, whatever the state of the store.
    let zero = limiter.take(&api, key(), Cost::ZERO).await;
    assert_eq!(zero, Err(StoreError::Request(RequestError::ZeroAmount("take"))));
    server.restart();
    wait_until("an answer", async || !limiter.check(&api, key()).await.degraded).await;
}

#[tokio::test]
async fn a_limiter_opens_while_its_server_is_unavailable() {
    let server = Server::start();
    let url = server.url();
    server.kill();
    let limiter = Limiter::open(&url).await.unwrap();
    assert_degraded(&limiter.check(&policy("1/h"), key()).await, false);
    server.restart();
    let store = limiter.as_redis().unwrap();
    wait_until("the server", async || store.ready().await.is_ok()).await;
    wait_until("an answer", async || limiter.check(&policy("1/h"), key()).await.allowed).await;
}

#[tokio::test]
async fn futures_dropped_at_any_point_leave_the_limiter_intact() {
    let server = Server::start();
    let limiter = open(&server).await;
    let api = policy("100/h log");
    for polls in 0..20 {
        let mut check = pin!(limiter.check(&api, key()));
        for _ in 0..polls {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(decision) = check.as_mut().poll(&mut context) {
                assert!(decision.allowed);
                break;
            }
            tokio::task::yield_now().await;
        }
    }
    let after = limiter.check(&api, key()).await;
    assert!(after.allowed && !after.degraded && after.remaining >= 100 - 21, "{after:?}");
    assert_eq!(limiter.stats().errors.len(), 0);
}

#[tokio::test]
async fn clusters_and_sentinels_are_opened_by_their_urls() {
    let (cluster, sentinel) = (Cluster::start(3, 0), Sentinel::start());
    for url in [cluster.url(), sentinel.url()] {
        let limiter = builder().open(&url).await.unwrap();
        let api = policy("2/h log");
        let checks =
            ["a", "b", "c"].map(|key| Check { policy: &api, key: key.as_bytes(), cost: Cost::ONE });
        let request = Request { operation: CHECK, checks: &checks, request_id: None };
        for allowed in [true, true, false] {
            let answer = limiter.decide(&request).await.unwrap();
            assert!(
                answer.decisions.iter().all(|decision| !decision.degraded),
                "{url}: {answer:?}"
            );
            assert_eq!(answer.allowed(), allowed, "{url}");
        }
    }
}

#[tokio::test]
async fn namespaces_have_separate_counts() {
    let server = Server::start();
    let api = policy("1/h");
    for namespace in ["shop", "bank"] {
        let limiter = builder().namespace(namespace).open(&server.url()).await.unwrap();
        assert!(limiter.check(&api, key()).await.allowed, "{namespace}");
        assert!(!limiter.check(&api, key()).await.allowed, "{namespace}");
    }
}

#[tokio::test]
async fn a_limiter_connects_with_tls_and_a_client_certificate() {
    let server = Server::with(|config| config.tls());
    let builder = builder()
        .ca(server.ca_path())
        .client_certificate(server.client_cert_path(), server.client_key_path());
    let limiter = builder.open(&server.url()).await.unwrap();
    let decision = limiter.check(&policy("1/h"), key()).await;
    assert!(decision.allowed && !decision.degraded, "{:?}", limiter.stats());
}

#[tokio::test]
async fn an_invalid_url_is_reported_with_a_remedy_and_without_its_password() {
    for (url, expected) in [
        ("redsi://u:secret@h", "unknown store \"redsi://u:***@h\"; expected memory, redis://"),
        ("redis://u:secret@h/x", "write a number, as in /2"),
        ("redis+cluster://a/3", "a cluster has database 0 only"),
        ("redis:secret@h", "write redis://HOST"),
        ("", "unknown store \"\""),
    ] {
        let error = Limiter::open(url).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("secret"), "{url}: {error}");
    }
    let builder = Limiter::builder().namespace("a b");
    let error = builder.open("redis://127.0.0.1").await.unwrap_err().to_string();
    assert!(error.contains("namespace"), "{error}");
}

#[tokio::test]
async fn a_namespace_with_its_own_clock_is_flushed() {
    let server = Server::start();
    let builder = builder().namespace("trial");
    // A limiter would announce this process in the namespace.
    let options = RedisOptions { namespace: "trial".to_owned(), ..RedisOptions::default() };
    let real = RedisStore::open(&server.url(), options).unwrap();
    real.ready().await.unwrap();
    let trial = builder.clock(ManualClock::default()).open(&server.url()).await.unwrap();
    assert!(trial.check(&policy("1/h"), key()).await.allowed);
    let error = real.flush_namespace().await.unwrap_err();
    assert!(matches!(error, FlushError::ServerClock { .. }), "{error}");
    assert_eq!(trial.as_redis().unwrap().flush_namespace().await, Ok(1));
    assert_eq!(server.keys(""), Vec::<String>::new());
}
