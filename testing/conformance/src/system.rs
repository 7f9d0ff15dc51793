//! Systems under test: stores with a clock that the test sets.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_algorithms::{Cost, Operation, Request, RequestError, Timestamp};
use tollgate_state::{Key, ManualClock, MemoryStore, Store, StoreError};

use crate::model::{Expected, Model, ModelError};

/// Returns the output of a future that is ready at once, as those of the memory store are.
///
/// # Panics
/// The future is not ready.
#[expect(clippy::panic, reason = "the memory store never waits")]
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the future is not ready at once"),
    }
}

/// The error of a system under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemError {
    /// The request cannot be decided.
    Request(RequestError),
    /// The system failed, which no request may cause.
    Failed(String),
}

/// A store and its clock. It reports decisions as the model does, so the model is a system too.
pub trait SystemUnderTest {
    /// Removes all state.
    fn reset(&mut self);

    /// Sets the clock, perhaps to an earlier time.
    fn set_time(&mut self, now: Timestamp);

    /// Decides one request.
    ///
    /// # Errors
    /// The request cannot be decided, or the system failed.
    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, SystemError>;

    /// Decides several requests in one call, in order.
    fn decide_all(&mut self, requests: &[Request<'_>]) -> Vec<Result<Vec<Expected>, SystemError>> {
        requests.iter().map(|request| self.decide(request)).collect()
    }
}

/// The model as a system under test: it must have every property that stores must have.
#[derive(Clone, Debug, Default)]
pub struct ModelSystem {
    model: Model,
    now: Timestamp,
}

impl ModelSystem {
    /// Whether the decision is undefined; see [`Model::is_undefined`].
    #[must_use]
    pub fn is_undefined(&self, request: &Request<'_>, now: Timestamp) -> bool {
        self.model.is_undefined(request, now)
    }
}

impl SystemUnderTest for ModelSystem {
    fn reset(&mut self) {
        self.model = Model::default();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, SystemError> {
        self.model.decide(request, self.now).map_err(|error| match error {
            ModelError::Request(request) => SystemError::Request(request),
            other => SystemError::Failed(other.to_string()),
        })
    }
}

/// The memory store as a system under test.
#[derive(Debug)]
pub struct MemorySystem {
    clock: ManualClock,
    store: MemoryStore,
    /// Whether single checks take the fast path.
    fast_path: bool,
}

impl Default for MemorySystem {
    fn default() -> Self {
        MemorySystem::new()
    }
}

impl MemorySystem {
    /// Creates a memory store that is called through the `Store` trait.
    #[must_use]
    pub fn new() -> Self {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        MemorySystem { clock, store, fast_path: false }
    }

    /// Creates a memory store whose single checks take the fast path.
    #[must_use]
    pub fn fast_path() -> Self {
        MemorySystem { fast_path: true, ..MemorySystem::new() }
    }

    /// The decision of the fast path, if the request can take it.
    fn check_fast_path(&self, request: &Request<'_>) -> Option<Expected> {
        let (Operation::Check { lease }, [check], None) =
            (request.operation, request.checks, request.request_id)
        else {
            return None;
        };
        let lease = match lease {
            None if check.policy.has_concurrent() => return None,
            lease => lease.unwrap_or(tollgate_algorithms::Id::from_u128(0)),
        };
        let key = Key::new(check.key).ok()?;
        let cost = Cost::new(check.cost.get())?;
        let decision = self.store.check(check.policy, key, cost, || lease);
        Some(Expected::from(&decision))
    }
}

impl SystemUnderTest for MemorySystem {
    fn reset(&mut self) {
        self.store = MemoryStore::builder().clock(self.clock.clone()).build();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, SystemError> {
        if self.fast_path
            && let Some(answer) = self.check_fast_path(request)
        {
            return Ok(vec![answer]);
        }
        match ready(self.store.decide(std::slice::from_ref(request))).pop() {
            Some(Ok(answer)) => Ok(answer.decisions.iter().map(Expected::from).collect()),
            Some(Err(StoreError::Request(request))) => Err(SystemError::Request(request)),
            answers => Err(SystemError::Failed(format!("{answers:?}"))),
        }
    }
}
