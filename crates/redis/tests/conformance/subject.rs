//! The Redis store as a subject of the properties.

use tollgate_conformance::model::Expected;
use tollgate_conformance::system::{SystemError, SystemUnderTest};
use tollgate_core::{Request, Timestamp};
use tollgate_redis::RedisStore;
use tollgate_store::{Answer, Store, StoreError};

use crate::place::Place;

/// A store under a namespace that is new for each case.
#[derive(Debug)]
pub(crate) struct RedisSubject {
    place: Place,
    store: RedisStore,
}

impl RedisSubject {
    pub(crate) fn new(place: Place) -> Self {
        let store = place.open();
        RedisSubject { place, store }
    }
}

fn told(answer: Result<Answer, StoreError>) -> Result<Vec<Expected>, SystemError> {
    match answer {
        Ok(answer) => Ok(answer.decisions.iter().map(Expected::from).collect()),
        Err(StoreError::Request(request)) => Err(SystemError::Request(request)),
        Err(error) => Err(SystemError::Failed(error.to_string())),
    }
}

impl SystemUnderTest for RedisSubject {
    fn reset(&mut self) {
        self.store = self.place.open();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.place.clock.set(now);
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, SystemError> {
        let mut answers = self.decide_all(std::slice::from_ref(request));
        answers.pop().unwrap_or_else(|| Err(SystemError::Failed("no answer".to_owned())))
    }

    fn decide_all(&mut self, requests: &[Request<'_>]) -> Vec<Result<Vec<Expected>, SystemError>> {
        let answers = self.place.block_on(self.store.decide(requests));
        answers.into_iter().map(told).collect()
    }
}
