//! Events of the feature `tracing`.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tollgate::{
    Answer, Cost, FailureKind, Limiter, ManualClock, MemoryLimiter, OnStoreError, Policy, Request,
    Store, StoreError,
};
use tracing_subscriber::fmt::MakeWriter;

/// What a subscriber has written.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Output {
    type Writer = Output;

    fn make_writer(&self) -> Output {
        self.clone()
    }
}

/// Returns the fields of the events of a closure.
fn events(run: impl FnOnce()) -> Vec<Value> {
    let output = Output::default();
    let subscriber = tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG)
        .without_time()
        .with_writer(output.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, run);
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .map(|mut event| {
            assert_eq!((&event["level"], &event["target"]), (&json!("DEBUG"), &json!("tollgate")));
            event["fields"].take()
        })
        .collect()
}

#[test]
fn denials_are_events_and_admissions_and_peeks_are_not() {
    let api = Policy::named("api", "1/min").unwrap();
    let shadow = Policy::named("trial", "1/min").unwrap().shadow();
    let limiter = MemoryLimiter::builder().clock(ManualClock::default()).build();
    let events = events(|| {
        let _ = limiter.check(&api, "secret");
        let _ = limiter.check(&api, "secret");
        let _ = limiter.peek(&api, "secret", Cost::ONE);
        let _ = limiter.take(&api, "secret", Cost::ONE).unwrap();
        let _ = limiter.check(&shadow, "secret");
        let _ = limiter.check(&shadow, "secret");
        let _ = limiter.reset(&api, "secret");
    });
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
    assert_eq!(events, expected);
}

/// A store that fails.
struct Failing;

impl Store for Failing {
    async fn decide(&self, requests: &[Request<'_>]) -> Vec<Result<Answer, StoreError>> {
        let failure = || Err(StoreError::unavailable(FailureKind::Unreachable, "down"));
        requests.iter().map(|_| failure()).collect()
    }
}

#[test]
fn decisions_without_the_store_are_events() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let limiter = Limiter::with_store(Failing);
    let events = events(|| {
        runtime.block_on(async {
            for answer in [OnStoreError::Allow, OnStoreError::Deny] {
                let policy = Policy::named("api", "1/min").unwrap().with_on_store_error(answer);
                let _ = limiter.check(&policy, "secret").await;
            }
        });
    });
    let event = |message: &str| json!({"message": message, "policy": "api", "reason": "store", "degraded": true});
    assert_eq!(events, [event("admitted without the store"), event("denied")]);
}
