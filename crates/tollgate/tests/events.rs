//! Events of the feature `tracing`.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use tollgate::{
    Answer, Cost, FailureKind, Limiter, ManualClock, MemoryLimiter, OnStoreError, Policy, Request,
    Source, Store, StoreError,
};
use tollgate_testkit::Events;

/// Removes and returns the fields of the events, which have this level.
fn fields(events: &Events, level: &str) -> Vec<Value> {
    let events = events.take().into_iter();
    events
        .map(|(found, target, fields)| {
            assert_eq!((&*found, &*target), (level, "tollgate"), "{fields}");
            fields
        })
        .collect()
}

#[test]
fn denials_are_events_and_admissions_and_peeks_are_not() {
    let api = Policy::named("api", "1/min").unwrap();
    let shadow = Policy::named("trial", "1/min").unwrap().shadow();
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let events = Events::record();
    let _ = limiter.check(&api, "secret");
    let _ = limiter.check(&api, "secret");
    let _ = limiter.peek(&api, "secret", Cost::ONE);
    let _ = limiter.take(&api, "secret", Cost::ONE).unwrap();
    let _ = limiter.check(&shadow, "secret");
    let _ = limiter.check(&shadow, "secret");
    let _ = limiter.reset(&api, "secret");
    let event = |message: &str, policy: &str, wait: Option<u64>| {
        let mut event =
            json!({"message": message, "policy": policy, "reason": "limit", "degraded": false});
        if let Some(wait) = wait {
            event["retry_after_us"] = wait.into();
        }
        event
    };
    let minute = Some(60_000_000);
    let expected = [
        event("denied", "api", minute),
        event("denied", "api", minute),
        event("denied in shadow mode", "trial", None),
    ];
    assert_eq!(fields(&events, "DEBUG"), expected);
}

/// A store that fails.
struct Failing;

impl Store for Failing {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let failure = || Err(StoreError::unavailable(FailureKind::Unreachable, "down"));
        requests.iter().map(|_| failure()).collect()
    }
}

#[tokio::test]
async fn decisions_without_the_store_are_events() {
    let limiter = Limiter::with_store(Failing);
    let events = Events::record();
    for answer in [OnStoreError::Allow, OnStoreError::Deny] {
        let policy = Policy::named("api", "1/min").unwrap().with_on_store_error(answer);
        let _ = limiter.check(&policy, "secret").await;
    }
    let event = |message: &str| json!({"message": message, "policy": "api", "reason": "store", "degraded": true});
    let expected = [event("admitted without the store"), event("denied")];
    assert_eq!(fields(&events, "DEBUG"), expected);
}

#[cfg(feature = "redis")]
mod outage {
    use std::time::Duration;

    use tollgate_testkit::{Server, wait_until};

    use super::*;

    #[tokio::test]
    async fn denials_by_leases_are_events() {
        let server = Server::start();
        let limiter = Limiter::redis(&server.url()).await.unwrap();
        let policy = Policy::named("api", "100/min fixed").unwrap().leased(None).unwrap();
        let events = Events::record();
        let mut denied = 0;
        let is_by_lease = async || {
            let decision = limiter.check(&policy, "secret").await;
            denied += usize::from(!decision.allowed);
            !decision.allowed && decision.source == Source::Lease
        };
        wait_until("a denial by a lease", is_by_lease).await;
        assert_eq!(fields(&events, "DEBUG").len(), denied);
    }

    /// Removes and returns the messages of the events of a level, once there are any.
    async fn messages(events: &Events, level: &str) -> Vec<String> {
        let mut messages = Vec::new();
        wait_until("an event", async || {
            for event in fields(events, level) {
                messages.push(event["message"].as_str().unwrap().to_owned());
            }
            !messages.is_empty()
        })
        .await;
        messages
    }

    #[tokio::test]
    async fn the_start_and_the_end_of_an_outage_are_warnings_and_each_decision_is_one_event() {
        let server = Server::start();
        server.kill();
        let events = Events::record();
        let builder = Limiter::builder().deadline(Duration::from_secs(1));
        let limiter = builder.open(&server.url()).await.unwrap();
        let outage =
            "store unavailable: checks that it does not answer are decided by on_store_error";
        assert_eq!(messages(&events, "WARN").await, [outage]);
        server.restart();
        assert_eq!(messages(&events, "WARN").await, ["store available again"]);
        wait_until("a share", async || limiter.stats().members == Some(1)).await;

        server.kill();
        assert_eq!(messages(&events, "WARN").await, [outage]);
        let policy = Policy::named("api", "1/d fixed").unwrap();
        for _ in 0..2 {
            let _ = limiter.check(&policy, "secret").await;
        }
        assert_eq!(messages(&events, "DEBUG").await, ["admitted without the store", "denied"]);
    }
}
