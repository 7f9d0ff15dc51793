//! The Redis store as a system under test, on a server or a cluster.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Runtime;
use tollgate_algorithms::{Request, Timestamp};
use tollgate_conformance::model::Expected;
use tollgate_conformance::system::{SystemError, SystemUnderTest};
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_state::{Answer, ManualClock, Store, StoreError};
use tollgate_testkit::{Cluster, Server};

/// A server or a cluster, and the clock of the stores on it.
#[derive(Debug)]
pub(crate) struct Deployment {
    url: String,
    pub(crate) clock: ManualClock,
    runtime: Runtime,
    /// The number of stores opened so far.
    opened: AtomicU32,
    short_log: Option<u16>,
}

impl Deployment {
    fn new(url: &str, short_log: Option<u16>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (clock, opened) = (ManualClock::default(), AtomicU32::new(0));
        Deployment { url: url.to_owned(), clock, runtime, opened, short_log }
    }

    /// On a server, logs of four entries are long already.
    pub(crate) fn server(server: &Server) -> Self {
        Deployment::new(&server.url(), Some(3))
    }

    pub(crate) fn cluster(cluster: &Cluster) -> Self {
        Deployment::new(&cluster.url(), None)
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Opens a store in a new namespace. On a cluster it has one partition, so that all checks of a
    /// request are in one call; the namespaces are on different nodes.
    pub(crate) fn open(&self) -> RedisStore {
        let namespace = format!("n{}", self.opened.fetch_add(1, Ordering::Relaxed));
        let options = RedisOptions {
            namespace,
            groups: self.url.contains("+cluster").then_some(1),
            connections: 1,
            clock: Some(self.clock.clone()),
            short_log: self.short_log,
            ..RedisOptions::default()
        };
        let _entered = self.runtime.enter();
        RedisStore::open(&self.url, options).unwrap()
    }
}

/// A store that is replaced by one in a new namespace for each case.
#[derive(Debug)]
pub(crate) struct RedisSystem {
    deployment: Deployment,
    store: RedisStore,
}

impl RedisSystem {
    pub(crate) fn new(deployment: Deployment) -> Self {
        let store = deployment.open();
        RedisSystem { deployment, store }
    }
}

fn expected(answer: Result<Answer, StoreError>) -> Result<Vec<Expected>, SystemError> {
    match answer {
        Ok(answer) => Ok(answer.decisions.iter().map(Expected::from).collect()),
        Err(StoreError::Request(request)) => Err(SystemError::Request(request)),
        Err(error) => Err(SystemError::Failed(error.to_string())),
    }
}

impl SystemUnderTest for RedisSystem {
    fn reset(&mut self) {
        self.store = self.deployment.open();
    }

    fn set_time(&mut self, now: Timestamp) {
        self.deployment.clock.set(now);
    }

    fn decide(&mut self, request: &Request<'_>) -> Result<Vec<Expected>, SystemError> {
        let mut answers = self.decide_all(std::slice::from_ref(request));
        answers.pop().unwrap_or_else(|| Err(SystemError::Failed("no answer".to_owned())))
    }

    fn decide_all(&mut self, requests: &[Request<'_>]) -> Vec<Result<Vec<Expected>, SystemError>> {
        let answers = self.deployment.block_on(self.store.decide(requests));
        answers.into_iter().map(expected).collect()
    }
}
