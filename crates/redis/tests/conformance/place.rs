//! Where a store under test is.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::Runtime;
use tollgate_redis::{RedisOptions, RedisStore};
use tollgate_store::ManualClock;
use tollgate_testkit::{Cluster, Server};

/// A server or a cluster, and the clock that the stores on it decide by.
#[derive(Debug)]
pub(crate) struct Place {
    url: String,
    pub(crate) clock: ManualClock,
    runtime: Runtime,
    opened: AtomicU32,
    short_log: Option<u16>,
}

impl Place {
    fn new(url: &str, short_log: Option<u16>) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (clock, opened) = (ManualClock::default(), AtomicU32::new(0));
        Place { url: url.to_owned(), clock, runtime, opened, short_log }
    }

    /// On a server logs are long from the fourth entry on.
    pub(crate) fn server(server: &Server) -> Self {
        Place::new(&server.url(), Some(3))
    }

    pub(crate) fn cluster(cluster: &Cluster) -> Self {
        Place::new(&cluster.url(), None)
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// A store that knows nothing: under a namespace of its own. On a cluster all its keys are of
    /// one group, so that all checks of a request are; the namespaces are on all nodes.
    pub(crate) fn open(&self) -> RedisStore {
        let namespace = format!("n{}", self.opened.fetch_add(1, Ordering::Relaxed));
        let options = RedisOptions {
            namespace,
            groups: 1,
            connections: 1,
            clock: Some(self.clock.clone()),
            short_log: self.short_log,
            ..RedisOptions::default()
        };
        let _entered = self.runtime.enter();
        RedisStore::open(&self.url, options).unwrap()
    }
}
