//! A simulation and its world.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::Builder;
use tollgate_redis::RedisOptions;

use crate::client::Client;
use crate::cluster::Cluster;
use crate::links::Links;
use crate::node::{EPOCH, Kind};
use crate::server::Server;
use crate::slots::SLOTS;
use crate::world::Shared;
use crate::world::state::State;

/// A test in virtual time. One seed determines everything that happens.
#[derive(Clone, Copy, Debug)]
pub struct Simulation {
    seed: u64,
    keeps_log: bool,
    time_limit: Duration,
}

/// The default limit of the time in a simulation.
const TIME_LIMIT: Duration = Duration::from_secs(3_600);

impl Simulation {
    /// Creates a simulation.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Simulation { seed, keeps_log: false, time_limit: TIME_LIMIT }
    }

    /// Keeps the text of all events, for [`World::log`].
    #[must_use]
    pub fn with_log(self) -> Self {
        Simulation { keeps_log: true, ..self }
    }

    /// Sets after which time in the simulation the test fails, because it may wait forever. Default: 1 h.
    #[must_use]
    pub fn with_time_limit(self, time_limit: Duration) -> Self {
        Simulation { time_limit, ..self }
    }

    /// Runs a test. Time passes only when every task waits, so that the test takes no time but that of
    /// the computations. It may spawn tasks and sleep with tokio; tasks that remain at the end are
    /// dropped.
    ///
    /// # Panics
    /// The test panics, or does not end within the time limit.
    pub fn run<T>(self, test: impl AsyncFnOnce(World) -> T) -> T {
        // The store draws its jitter from the generator of the thread.
        fastrand::seed(self.seed);
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.expect("the runtime starts");
        runtime.block_on(async {
            let shared = Arc::new(Shared::new(self.seed, self.keeps_log));
            tokio::spawn(Arc::clone(&shared).drive());
            let result = tokio::time::timeout(self.time_limit, test(World { shared })).await;
            result.expect("the test ends within the time limit of the simulation")
        })
    }
}

/// The servers, the clients and the network of a simulation.
#[derive(Clone)]
pub struct World {
    shared: Arc<Shared>,
}

impl World {
    fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.shared.with(change)
    }

    fn add(&self, kind: Kind) -> Server {
        Server::new(&self.shared, self.with(|state| state.add_server(kind)))
    }

    /// Starts a server.
    #[must_use]
    pub fn start_server(&self) -> Server {
        self.add(Kind::Single)
    }

    /// Starts a replica of a server.
    #[must_use]
    pub fn start_replica(&self, primary: &Server) -> Server {
        let kind = self.with(|state| state.kind_like(primary.index()));
        let replica = self.add(kind);
        replica.replicate(primary);
        replica
    }

    /// Starts a cluster whose primaries have equal shares of the slots. A world has at most one.
    ///
    /// # Panics
    /// There are no primaries, or the world has a cluster already.
    #[must_use]
    pub fn start_cluster(&self, primaries: usize, replicas_each: usize) -> Cluster {
        let count = u16::try_from(primaries).ok().filter(|count| *count > 0);
        let count = count.expect("a cluster has some primaries");
        let has_cluster = self.with(|state| state.slots.version > 0);
        assert!(!has_cluster, "a world has one cluster");
        let cluster = Cluster::new(&self.shared);
        let started: Vec<Server> = (0..primaries).map(|_| cluster.start_primary()).collect();
        self.with(|state| {
            state.update_slots(started[0].index(), |table| {
                let bound = |part: u16| {
                    let bound = u32::from(SLOTS) * u32::from(part) / u32::from(count);
                    u16::try_from(bound).expect("at most all slots")
                };
                for (part, server) in (0..count).zip(&started) {
                    table.assign(bound(part)..bound(part + 1), Some(server.index()));
                }
            });
        });
        for primary in &started {
            for _ in 0..replicas_each {
                let _: Server = self.start_replica(primary);
            }
        }
        cluster
    }

    /// Starts sentinels that know a primary by a name.
    #[must_use]
    pub fn start_sentinels(&self, count: usize, name: &str, primary: &Server) -> Vec<Server> {
        let start = |_| {
            let sentinel = self.add(Kind::Sentinel);
            sentinel.set_master(name, primary);
            sentinel
        };
        (0..count).map(start).collect()
    }

    /// Returns a server, numbered in the order in which they were started.
    ///
    /// # Panics
    /// There is no such server.
    #[must_use]
    pub fn server(&self, index: usize) -> Server {
        let count = self.with(|state| state.processes.len());
        assert!(index < count, "there are {count} servers, but not server {index}");
        Server::new(&self.shared, index)
    }

    /// Points a host name to a server, such as that of a load balancer. Connections that are open stay
    /// with the server that they were made to.
    pub fn set_name(&self, host: &str, server: &Server) {
        self.with(|state| state.names.insert(host.to_owned(), server.index()));
    }

    /// Adds a machine on which stores run.
    #[must_use]
    pub fn start_client(&self) -> Client {
        Client::new(&self.shared, self.with(State::add_client))
    }

    /// Returns options of a store on a new client.
    #[must_use]
    pub fn options(&self) -> RedisOptions {
        self.start_client().options()
    }

    /// Returns all links, and the properties of new ones.
    #[must_use]
    pub fn links(&self) -> Links {
        Links::new(&self.shared, None, None)
    }

    /// Returns the time since the start of the simulation.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.with(|state| state.now)
    }

    /// Returns the time in µs since the epoch, as a server without clock skew has it.
    #[must_use]
    pub fn now_micros(&self) -> u64 {
        EPOCH + u64::try_from(self.elapsed().as_micros()).expect("the time fits u64")
    }

    /// Returns a generator of random numbers that the seed determines.
    #[must_use]
    pub fn rng(&self) -> Rng {
        self.with(|state| state.rng.fork())
    }

    /// Returns the hash of all events so far: equal if the seed and the test are equal.
    #[must_use]
    pub fn trace_hash(&self) -> u64 {
        self.with(|state| state.trace.hash())
    }

    /// Returns the text of all events so far, if [`Simulation::with_log`] was called.
    #[must_use]
    pub fn log(&self) -> Vec<String> {
        self.with(|state| state.trace.lines().to_vec())
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}
