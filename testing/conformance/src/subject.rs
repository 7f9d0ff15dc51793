//! What is put to the test: a store whose time is set from outside.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tollgate_core::{Cost, Operation, Request, RequestError, Timestamp};
use tollgate_store::{Key, ManualClock, MemoryStore, Store, StoreError};

use crate::model::{Expected, Model, ModelError};

/// Why a subject did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request cannot be decided.
    Request(RequestError),
    /// The subject failed, which no request may bring about.
    Failed(String),
}

/// A store and its clock. It answers in the model's terms, so the model is a subject as well.
pub trait Subject {
    /// Knows nothing any more.
    fn forget_all(&mut self);

    /// Sets its clock, perhaps to an earlier time.
    fn set_time(&mut self, now: Timestamp);

    /// Decides one request.
    ///
    /// # Errors
    /// It cannot be decided, or the subject failed.
    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, Refusal>;

    /// Decides several requests at once, in order, as a store does that is asked for all of them.
    fn decide_all(&mut self, requests: &[Request<'_>]) -> Vec<Result<Vec<Expected>, Refusal>> {
        requests.iter().map(|request| self.decide(request)).collect()
    }
}

/// The model as a subject: what holds of every store must hold of it.
#[derive(Clone, Debug, Default)]
pub struct ModelSubject {
    model: Model,
    now: Timestamp,
}

impl ModelSubject {
    /// Whether the answer to this request is anyone's guess; see [`Model::is_unsure`].
    #[must_use]
    pub fn is_unsure(&self, request: &Request<'_>, now: Timestamp) -> bool {
        self.model.is_unsure(request, now)
    }
}

impl Subject for ModelSubject {
    fn forget_all(&mut self) {
        self.model = Model::default();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.now = now;
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, Refusal> {
        self.model.decide(request, self.now).map_err(|error| match error {
            ModelError::Request(request) => Refusal::Request(request),
            other => Refusal::Failed(other.to_string()),
        })
    }
}

/// The memory store as a subject.
#[derive(Debug)]
pub struct MemorySubject {
    clock: ManualClock,
    store: MemoryStore,
    /// Whether single checks take the store's straight path.
    straight: bool,
}

impl MemorySubject {
    /// A memory store that is asked through the contract of stores.
    #[must_use]
    pub fn through_the_contract() -> Self {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).build();
        MemorySubject { clock, store, straight: false }
    }

    /// A memory store whose single checks take the straight path.
    #[must_use]
    pub fn straight() -> Self {
        MemorySubject { straight: true, ..MemorySubject::through_the_contract() }
    }

    /// The answer of the straight path, if the request can take it.
    fn check_straight(&self, request: &Request<'_>) -> Option<Expected> {
        let (Operation::Check { lease }, [check], None) =
            (request.operation, request.checks, request.request_id)
        else {
            return None;
        };
        let lease = match lease {
            None if check.policy.has_concurrent() => return None,
            lease => lease.unwrap_or(tollgate_core::Id::from_u128(0)),
        };
        let key = Key::new(check.key).ok()?;
        let cost = Cost::new(check.cost.get())?;
        let decision = self.store.check(check.policy, key, cost, || lease);
        Some(Expected::from(&decision))
    }
}

impl Subject for MemorySubject {
    fn forget_all(&mut self) {
        self.store = MemoryStore::builder().clock(self.clock.clone()).build();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.clock.set(now);
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, Refusal> {
        if self.straight
            && let Some(answer) = self.check_straight(request)
        {
            return Ok(vec![answer]);
        }
        let requests = [*request];
        let mut future = pin!(self.store.decide(&requests));
        let Poll::Ready(mut answers) =
            future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            return Err(Refusal::Failed("the memory store is not ready at once".to_owned()));
        };
        match answers.pop() {
            Some(Ok(answer)) => Ok(answer.decisions.iter().map(Expected::from).collect()),
            Some(Err(StoreError::Request(request))) => Err(Refusal::Request(request)),
            answers => Err(Refusal::Failed(format!("{answers:?}"))),
        }
    }
}
