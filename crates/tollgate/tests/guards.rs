//! Permits, charges and waiting, in memory in virtual time and on a real server.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tollgate::{
    AcquireError, Answer, Ban, Check, Clock, Cost, Denied, FailureKind, Id, Limiter, MemoryLimiter,
    MemoryStore, OnStoreError, Operation, Permit, Policy, Request, RequestError, Store, StoreError,
    Timestamp,
};

const SECOND: Duration = Duration::from_secs(1);

fn policy(limits: &str) -> Policy {
    Policy::named("api", limits).unwrap()
}

/// A clock that follows tokio's.
fn tokio_clock() -> Clock {
    let start = Instant::now();
    Clock::from_fn(move || {
        Timestamp::from_micros(1_763_650_000_000_000).saturating_add(start.elapsed().into())
    })
}

fn in_memory() -> Limiter {
    MemoryLimiter::builder().clock(tokio_clock()).build().into()
}

/// A store that counts the checks.
struct Counted {
    inner: MemoryStore,
    checks: Arc<AtomicUsize>,
}

impl Store for Counted {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        self.checks.fetch_add(requests.len(), Ordering::SeqCst);
        self.inner.decide(requests).await
    }
}

async fn wait(limiter: &Limiter, policy: &Policy, within: Duration) -> Result<Permit, Denied> {
    limiter.until_allowed(policy, "a", Cost::ONE, within).await
}

async fn remaining(limiter: &Limiter, policy: &Policy) -> u64 {
    limiter.peek(policy, "a", Cost::ONE).await.remaining
}

#[tokio::test(start_paused = true)]
async fn waiting_callers_are_admitted_in_order_and_only_the_first_checks() {
    let checks = Arc::new(AtomicUsize::new(0));
    let inner = MemoryStore::builder().clock(tokio_clock()).build();
    let limiter = Limiter::with_store(Counted { inner, checks: Arc::clone(&checks) });
    let (start, order) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
    let tasks: Vec<JoinHandle<_>> = (0..100)
        .map(|index| {
            let (limiter, order) = (limiter.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                // Arrives in order.
                sleep(Duration::from_micros(index)).await;
                let within = Duration::from_secs(1_000);
                let _permit = wait(&limiter, &policy("1/s burst 1"), within).await.unwrap();
                order.lock().unwrap().push((index, start.elapsed().as_secs()));
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let order = order.lock().unwrap();
    assert_eq!(*order, (0..100).map(|index| (index, index)).collect::<Vec<_>>());
    // Each caller checks once at its turn, and once when the limit admits it.
    assert!(checks.load(Ordering::SeqCst) <= 200, "{checks:?}");
}

#[tokio::test(start_paused = true)]
async fn callers_that_stop_waiting_charge_nothing_and_leave_the_queue() {
    let (limiter, limit) = (in_memory(), policy("1/10s burst 1"));
    let _first = wait(&limiter, &limit, SECOND).await.unwrap();
    let waiting = |limiter: Limiter, limit: Policy| {
        tokio::spawn(async move { wait(&limiter, &limit, 600 * SECOND).await.map(drop) })
    };
    let tasks: Vec<_> = (0..4).map(|_| waiting(limiter.clone(), limit.clone())).collect();
    sleep(SECOND).await;
    // The one that checks, and one behind it.
    tasks[0].abort();
    tasks[2].abort();
    let (start, mut admitted) = (Instant::now(), Vec::new());
    for task in tasks {
        if let Ok(permit) = task.await {
            permit.unwrap();
            admitted.push(start.elapsed().as_secs());
        }
    }
    assert_eq!(admitted, [9, 19]);
    // Two admissions in 20 s: nothing was charged for the others.
    sleep(10 * SECOND).await;
    assert_eq!(remaining(&limiter, &limit).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_would_be_too_long_ends_at_once() {
    let (limiter, limit) = (in_memory(), policy("1/min burst 1"));
    let _first = wait(&limiter, &limit, SECOND).await.unwrap();
    let start = Instant::now();
    let denied = wait(&limiter, &limit, 59 * SECOND).await.unwrap_err();
    assert_eq!(denied, Denied::RetryAfter(60 * SECOND));
    let never = limiter.until_allowed(&limit, "a", Cost::from(2), 600 * SECOND).await;
    assert_eq!(never.unwrap_err(), Denied::ExceedsCapacity);
    let _ = limiter.block(&limit, "blocked", None).await.unwrap();
    let blocked = limiter.until_allowed(&limit, "blocked", Cost::ONE, 600 * SECOND).await;
    assert_eq!(blocked.unwrap_err(), Denied::Blocked);
    assert_eq!(start.elapsed(), Duration::ZERO);

    // Behind another caller, at the end of its time.
    let first = {
        let (limiter, limit) = (limiter.clone(), limit.clone());
        tokio::spawn(async move { wait(&limiter, &limit, 600 * SECOND).await.map(drop) })
    };
    tokio::task::yield_now().await;
    let behind = wait(&limiter, &limit, 30 * SECOND).await.unwrap_err();
    assert!(matches!(behind, Denied::RetryAfter(_)), "{behind}");
    assert_eq!(start.elapsed(), 30 * SECOND);
    first.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn waiting_does_not_count_as_a_denial_and_a_denial_does() {
    let ban = Ban::new(2, 600 * SECOND, 600 * SECOND).unwrap();
    let counting = policy("1/10s log count-denied");
    for limit in [counting, policy("1/10s log").with_ban(ban)] {
        let (limiter, start) = (in_memory(), Instant::now());
        for _ in 0..4 {
            let _permit = wait(&limiter, &limit, 60 * SECOND).await.unwrap();
        }
        assert!(start.elapsed().abs_diff(30 * SECOND) < Duration::from_millis(5), "{limit}");
        // Two denials, of which the last is counted or bans the key.
        sleep(SECOND).await;
        for _ in 0..2 {
            assert!(limiter.acquire(&limit, "a").await.is_err());
        }
        let wait = limiter.peek(&limit, "a", Cost::ONE).await.retry_after.unwrap();
        assert!(Duration::from(wait) > 9 * SECOND, "{limit} {wait}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_delay_of_a_queue_is_waited_for_or_undone() {
    let (limiter, limit) = (in_memory(), policy("1/s queue 10"));
    let start = Instant::now();
    let _first = limiter.acquire(&limit, "a").await.unwrap();
    for seconds in 1..4 {
        let _permit = wait(&limiter, &limit, 5 * SECOND).await.unwrap();
        assert_eq!(start.elapsed().as_secs(), seconds);
    }
    let before = remaining(&limiter, &limit).await;
    // These would have to wait, and do not.
    let denied = limiter.acquire(&limit, "a").await.unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(time) if time <= SECOND), "{denied}");
    let denied = wait(&limiter, &limit, Duration::from_millis(400)).await.unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(time) if time <= SECOND * 6 / 10), "{denied}");
    assert_eq!(remaining(&limiter, &limit).await, before);
    // Neither does one that is dropped while it waits.
    assert!(timeout(SECOND / 2, wait(&limiter, &limit, 5 * SECOND)).await.is_err());
    sleep(10 * SECOND).await;
    assert_eq!(remaining(&limiter, &limit).await, 11);
}

#[tokio::test(start_paused = true)]
async fn a_permit_is_renewed_until_it_is_dropped() {
    let (limiter, places) = (in_memory(), policy("2 concurrent lease 3s"));
    let permit = limiter.acquire(&places, "a").await.unwrap();
    let other = limiter.acquire(&places, "a").await.unwrap();
    sleep(60 * SECOND).await;
    assert_eq!(remaining(&limiter, &places).await, 0);
    assert!(!permit.is_lost());
    other.release().await.unwrap();
    assert_eq!(remaining(&limiter, &places).await, 1);
    // The next caller gets the place when it becomes free.
    let _second = limiter.acquire(&places, "a").await.unwrap();
    let waiting = {
        let (limiter, places) = (limiter.clone(), places.clone());
        tokio::spawn(async move { wait(&limiter, &places, 60 * SECOND).await })
    };
    sleep(5 * SECOND).await;
    assert!(!waiting.is_finished());
    let start = Instant::now();
    drop(permit);
    let third = waiting.await.unwrap().unwrap();
    assert!(start.elapsed() <= Duration::from_millis(251), "{:?}", start.elapsed());
    // An operator takes the place away.
    limiter.reset(&places, "a").await.map(drop).unwrap();
    sleep(2 * SECOND).await;
    assert!(third.is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_place_that_stays_taken_is_denied_after_the_longest_wait() {
    let (limiter, places) = (in_memory(), policy("1 concurrent lease 60s"));
    let _permit = limiter.acquire(&places, "a").await.unwrap();
    let start = Instant::now();
    let denied = wait(&limiter, &places, 10 * SECOND).await.unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(_)), "{denied}");
    assert_eq!(start.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn several_checks_are_one_request_and_are_settled_by_policy() {
    let limiter = in_memory();
    let requests = Policy::named("requests", "10/h").unwrap();
    let tokens = Policy::named("tokens", "1000/h").unwrap();
    let places = Policy::named("places", "1 concurrent lease 60s").unwrap();
    let checks = [
        Check::new(&requests, "a"),
        Check::new(&tokens, "a").with_cost(Cost::from(600)),
        Check::new(&places, "a"),
    ];
    let permit = limiter.acquire_all(&checks).await.unwrap();
    let denied = limiter.acquire_all(&checks).await.unwrap_err();
    assert!(matches!(denied, AcquireError::Denied(Denied::RetryAfter(_))), "{denied}");
    assert_eq!(remaining(&limiter, &requests).await, 9);
    // A policy that the permit does not have changes nothing.
    permit.settle(&policy("9/h"), Cost::ZERO).await.unwrap();
    for (actual, left) in [(100, 900), (300, 700), (50, 950)] {
        permit.settle(&tokens, Cost::from(actual)).await.unwrap();
        assert_eq!(remaining(&limiter, &tokens).await, left);
        assert_eq!(remaining(&limiter, &requests).await, 9);
    }
    permit.settle(&requests, Cost::from(3)).await.unwrap();
    assert_eq!(
        (remaining(&limiter, &tokens).await, remaining(&limiter, &requests).await),
        (950, 7)
    );
    // A second refund has nothing to give back.
    for _ in 0..2 {
        permit.refund().await.unwrap();
        assert_eq!(remaining(&limiter, &requests).await, 10);
        assert_eq!(remaining(&limiter, &tokens).await, 1_000);
    }
    assert_eq!(remaining(&limiter, &places).await, 0);
    drop(permit);
    assert_eq!(remaining(&limiter, &places).await, 1);
    for checks in [&[][..], &[Check::new(&requests, "")]] {
        let invalid = limiter.acquire_all(checks).await.unwrap_err();
        assert!(matches!(invalid, AcquireError::Invalid(_)), "{invalid}");
    }
    assert_eq!(
        limiter.check_all(&[]).await.unwrap_err(),
        StoreError::Request(RequestError::NoCheck)
    );
}

/// Waiting for a slot cannot help a key that another limit denies for longer.
#[tokio::test]
async fn a_caller_that_another_limit_denies_for_too_long_does_not_wait_for_a_slot() {
    let limiter = in_memory();
    let both = policy("1 concurrent lease 60s; 1/h fixed");
    let _permit = limiter.acquire(&both, "a").await.unwrap();
    let start = Instant::now();
    let denied = wait(&limiter, &both, 10 * SECOND).await.unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(_)), "{denied}");
    assert!(start.elapsed() < SECOND, "{:?}", start.elapsed());
}

/// A store of the program receives a batch as one.
#[tokio::test]
async fn a_batch_is_one_call_of_the_store() {
    struct Batches(MemoryStore, Arc<Mutex<Vec<usize>>>);

    impl Store for Batches {
        async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
            self.1.lock().unwrap().push(requests.len());
            self.0.decide(requests).await
        }
    }

    let calls = Arc::new(Mutex::new(Vec::new()));
    let limiter = Limiter::with_store(Batches(MemoryStore::default(), Arc::clone(&calls)));
    let policy = policy("1/h");
    let checks = ["a", "b", "", "a"].map(|key| [Check::new(&policy, key)]);
    let operation = Operation::Check { lease: None };
    let requests = checks.each_ref().map(|checks| Request { operation, checks, request_id: None });
    let answers = limiter.decide_batch(&requests).await;
    let allowed: Vec<_> =
        answers.iter().map(|answer| answer.as_ref().ok().map(Answer::allowed)).collect();
    assert_eq!(allowed, [Some(true), Some(true), None, Some(false)]);
    assert_eq!(*calls.lock().unwrap(), [3]);
}

#[tokio::test]
async fn a_charge_is_settled_once_refunded_or_stays() {
    let (limiter, tokens) = (in_memory(), policy("1000/h"));
    let charge = async || limiter.charge(&tokens, "a", Cost::from(100)).await.unwrap();
    for (actual, left) in [(40, 960), (160, 800), (100, 700), (0, 700)] {
        charge().await.settle(Cost::from(actual)).await.unwrap();
        assert_eq!(remaining(&limiter, &tokens).await, left, "{actual}");
    }
    charge().await.refund().await.unwrap();
    assert_eq!(remaining(&limiter, &tokens).await, 700);
    drop(charge().await);
    assert_eq!(remaining(&limiter, &tokens).await, 600);
    let denied = limiter.charge(&tokens, "a", Cost::from(601)).await.unwrap_err();
    assert!(matches!(denied, Denied::RetryAfter(_)), "{denied}");
}

/// A store that is unavailable after the first request.
struct Failing(MemoryStore, AtomicUsize);

impl Store for Failing {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let is_first = self.1.fetch_add(1, Ordering::SeqCst) == 0;
        if is_first || requests.iter().any(|request| !request.operation.decides()) {
            return self.0.decide(requests).await;
        }
        let failure = StoreError::unavailable(FailureKind::Unreachable, "");
        requests.iter().map(|_| Err(failure.clone())).collect()
    }

    async fn inspect(
        &self,
        policy: &Policy,
        key: tollgate::Key<'_>,
    ) -> Result<tollgate::Inspection, StoreError> {
        Ok(self.0.inspect(policy, key))
    }
}

/// A store that rejects the first change of an admission.
struct RejectsOnce(MemoryStore, AtomicBool);

impl Store for RejectsOnce {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let is_change = requests.iter().any(|request| !request.operation.decides());
        if is_change && !self.1.swap(true, Ordering::SeqCst) {
            let failure = StoreError::unavailable(FailureKind::Rejected, "");
            return requests.iter().map(|_| Err(failure.clone())).collect();
        }
        self.0.decide(requests).await
    }
}

#[tokio::test]
async fn a_settlement_that_failed_can_be_repeated() {
    for (id, actual, left) in [(None, 4, 6), (None, 7, 3), (Some(Id::from_u128(7)), 4, 6)] {
        let store = RejectsOnce(MemoryStore::default(), AtomicBool::new(false));
        let (limiter, tokens) = (Limiter::with_store(store), policy("10/h"));
        let checks = [Check::new(&tokens, "a").with_cost(Cost::from(5))];
        let text = id.map(|id| id.to_string());
        let request_id = text.as_deref().map(str::as_bytes);
        let operation = Operation::Check { lease: None };
        let answer = limiter.decide(&Request { operation, checks: &checks, request_id }).await;
        let permit = Permit::from_answer(&limiter, &checks, answer.unwrap(), id);
        permit.settle_all(Cost::from(actual)).await.unwrap_err();
        assert_eq!(remaining(&limiter, &tokens).await, 5);
        for _ in 0..2 {
            permit.settle_all(Cost::from(actual)).await.unwrap();
            assert_eq!(remaining(&limiter, &tokens).await, left);
        }
        permit.refund().await.unwrap();
        assert_eq!(remaining(&limiter, &tokens).await, 10);
    }
}

/// A refund of an admission that was not charged would raise the limit.
#[tokio::test]
async fn an_admission_without_the_store_is_neither_refunded_nor_settled() {
    let limiter = Limiter::with_store(Failing(MemoryStore::default(), AtomicUsize::new(0)));
    let open = policy("10/h").with_on_store_error(OnStoreError::Allow);
    let used = async || limiter.inspect(&open, "a").await.unwrap().limits[0].used;
    let charged = limiter.charge(&open, "a", Cost::from(5)).await.unwrap();
    assert_eq!((charged.decision().charged_cost(), used().await), (Cost::from(5), 5));
    for _ in 0..3 {
        let degraded = limiter.charge(&open, "a", Cost::from(5)).await.unwrap();
        assert!(degraded.decision().degraded);
        assert_eq!(degraded.decision().charged_cost(), Cost::ZERO);
        degraded.settle(Cost::ONE).await.unwrap();
        limiter.charge(&open, "a", Cost::from(5)).await.unwrap().refund().await.unwrap();
        assert_eq!(used().await, 5);
    }
    charged.refund().await.unwrap();
    assert_eq!(used().await, 0);
    let closed = open.with_on_store_error(OnStoreError::Deny);
    let denied = limiter.acquire(&closed, "a").await.unwrap_err();
    assert_eq!(denied, Denied::StoreUnavailable);
}

#[cfg(feature = "redis")]
mod redis {
    use tollgate_testkit::{Server, wait_until};

    use super::*;

    async fn on(server: &Server) -> Limiter {
        let deadline = Duration::from_secs(10);
        let builder = Limiter::builder().deadline(deadline).connect_timeout(deadline);
        builder.redis(&server.url()).await.unwrap()
    }

    #[tokio::test]
    async fn a_permit_is_renewed_and_released() {
        let server = Server::start();
        let (limiter, places) = (on(&server).await, policy("1 concurrent lease 1s"));
        let permit = limiter.acquire(&places, "a").await.unwrap();
        let start = Instant::now();
        while start.elapsed() < 3 * SECOND {
            assert_eq!(remaining(&limiter, &places).await, 0);
            sleep(SECOND / 10).await;
        }
        let waiting = {
            let (limiter, places) = (limiter.clone(), places.clone());
            tokio::spawn(async move { wait(&limiter, &places, 30 * SECOND).await.map(drop) })
        };
        sleep(SECOND / 10).await;
        assert!(!waiting.is_finished());
        drop(permit);
        waiting.await.unwrap().unwrap();
    }

    /// A future that is dropped while the store decides must keep neither the lease nor the charge.
    #[tokio::test]
    async fn futures_that_are_dropped_during_the_decision_charge_nothing() {
        let server = Server::start();
        let limiter = on(&server).await;
        let places = Policy::named("places", "1 concurrent lease 60s").unwrap();
        let tokens = Policy::named("tokens", "10/h").unwrap();
        for _ in 0..3 {
            // The requests are sent, and executed after the futures are dropped.
            server.pause();
            let dropped = async {
                tokio::join!(
                    async { limiter.acquire(&places, "a").await.map(drop) },
                    async { limiter.charge(&tokens, "a", Cost::from(5)).await.map(drop) },
                    async { wait(&limiter, &tokens, SECOND).await.map(drop) },
                )
            };
            assert!(timeout(SECOND / 10, dropped).await.is_err());
            server.resume();
            sleep(SECOND / 5).await;
            wait_until("nothing is charged", async || {
                (remaining(&limiter, &places).await, remaining(&limiter, &tokens).await) == (1, 10)
            })
            .await;
        }
    }
}
