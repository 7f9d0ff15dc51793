//! Flushing a namespace: deleting all of its keys on every primary, and no other keys.
//!
//! A pass covers all servers. On a cluster, a pass may miss keys that are migrated meanwhile, so it
//! is conclusive only if no slot of the namespace was being migrated before and after it. If a
//! migration hangs, keys move in one direction only: two consecutive passes over both nodes that find
//! no keys are conclusive, too.

mod primary;

use std::fmt;
use std::time::Duration;

use tollgate_state::{Failure, FailureKind, StoreError};

use primary::Primary;
pub(crate) use primary::parse_scan;

use crate::handshake::ServerKind;
use crate::options::DEFAULT_NAMESPACE;
use crate::store::RedisStore;
use crate::topology::{self, SlotMap};
use crate::url::Address;

/// The maximum number of passes, and the pause between them: long enough for a failover.
const MAX_PASSES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// The result of a pass.
#[derive(Debug, Default)]
struct Pass {
    /// The number of keys deleted, over all passes.
    deleted: u64,
    found_any: bool,
    /// Whether the pass may have missed keys that were being migrated.
    is_migrating: bool,
}

impl RedisStore {
    /// Deletes all keys of the store's namespace on every primary; returns their number. Use it after
    /// a test or a replayed log, whose keys would expire only after an hour or longer.
    ///
    /// The store needs its own clock and a namespace other than the default, so that production data
    /// is not deleted by mistake. Concurrent requests on the namespace may leave keys behind.
    ///
    /// This scans all keys of the servers (`SCAN`), which takes about 1 s per million keys, in steps of
    /// less than 1 ms between which the servers execute other commands. It tolerates migrations and
    /// failovers, and gives up after about 10 s of waiting. The user also needs `+scan` and `+unlink`.
    ///
    /// # Errors
    /// Returns an error if the store has no clock of its own or the default namespace, or if keys may
    /// remain; in that case it can be called again.
    ///
    /// # Examples
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate_redis::{RedisOptions, RedisStore};
    /// use tollgate_state::ManualClock;
    ///
    /// let options = RedisOptions {
    ///     namespace: "trial-7".to_owned(),
    ///     clock: Some(ManualClock::default()),
    ///     ..RedisOptions::default()
    /// };
    /// let store = RedisStore::open("redis://127.0.0.1", options)?;
    /// println!("{} keys deleted", store.flush_namespace().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn flush_namespace(&self) -> Result<u64, FlushError> {
        let options = &self.context().options;
        let namespace: Box<str> = options.namespace.as_str().into();
        if options.clock.is_none() {
            return Err(FlushError::ServerClock { namespace });
        }
        if *namespace == *DEFAULT_NAMESPACE {
            return Err(FlushError::DefaultNamespace { namespace });
        }
        let mut pass = Pass::default();
        match self.flush(&mut pass).await {
            Ok(()) => Ok(pass.deleted),
            Err(failure) => {
                Err(FlushError::Unfinished { namespace, deleted: pass.deleted, failure })
            }
        }
    }

    async fn flush(&self, pass: &mut Pass) -> Result<(), Failure> {
        let mut was_empty = false;
        let mut last = migrating();
        for number in 0..MAX_PASSES {
            if number > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            *pass = Pass { deleted: pass.deleted, ..Pass::default() };
            match self.run_pass(pass).await {
                Ok(()) if !pass.is_migrating || (was_empty && !pass.found_any) => return Ok(()),
                Ok(()) => (was_empty, last) = (!pass.found_any, migrating()),
                Err(error) if is_temporary(error.kind) => (was_empty, last) = (false, error),
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn run_pass(&self, pass: &mut Pass) -> Result<(), Failure> {
        let slots = self.slots().await?;
        let mut primaries = Vec::new();
        for address in &slots.nodes {
            primaries.push(Primary::dial(self.context(), address).await?);
        }
        for to in self.destinations(&slots, &primaries).await? {
            pass.is_migrating = true;
            // The destination may not be a primary of any slot yet.
            if !primaries.iter().any(|primary| primary.is_at(&to)) {
                primaries.push(Primary::dial(self.context(), &to).await?);
            }
        }
        for primary in &primaries {
            primary.flush(pass).await?;
        }
        for to in self.destinations(&slots, &primaries).await? {
            pass.is_migrating = true;
            if !primaries.iter().any(|primary| primary.is_at(&to)) {
                return Err(migrating());
            }
        }
        Ok(())
    }

    /// Returns the current primaries and their slots.
    pub(crate) async fn slots(&self) -> Result<SlotMap, Failure> {
        match self.ready().await {
            Err(StoreError::Unavailable(failure)) => return Err(failure),
            Err(error) => return Err(Failure::new(FailureKind::Rejected, error.to_string())),
            Ok(()) => {}
        }
        let nodes = self.routes().nodes();
        if self.context().server_kind == ServerKind::Proxy {
            let message =
                "a proxy cannot list keys: without the option groups, open each server behind it";
            return Err(Failure::new(FailureKind::WrongTopology, message));
        }
        if self.context().server_kind == ServerKind::ClusterNode {
            let slots = topology::query_slots(&nodes).await?;
            return Ok(slots.translate(&self.context().address_map));
        }
        let primary = nodes.first().map(|node| SlotMap::single(node.address().clone()));
        primary.ok_or_else(|| Failure::new(FailureKind::Unreachable, "the primary is unknown"))
    }

    /// Returns the nodes to which slots of the namespace are being migrated.
    async fn destinations(
        &self,
        slots: &SlotMap,
        primaries: &[Primary<'_>],
    ) -> Result<Vec<Address>, Failure> {
        let mut destinations = Vec::new();
        for (tag, slot) in self.context().keyspace.tags() {
            let owner = slots.node_of(slot);
            let owner =
                owner.and_then(|owner| primaries.iter().find(|primary| primary.is_at(owner)));
            let owner = owner.ok_or_else(|| {
                Failure::new(FailureKind::ClusterDown, format!("no node has slot {slot}"))
            })?;
            if let Some(to) = owner.destination(tag).await?
                && !destinations.contains(&to)
            {
                destinations.push(to);
            }
        }
        Ok(destinations)
    }
}

fn migrating() -> Failure {
    Failure::new(FailureKind::TryAgain, "keys of the namespace were being migrated")
}

/// Returns whether a failure may be temporary.
fn is_temporary(kind: FailureKind) -> bool {
    matches!(
        kind,
        FailureKind::Unreachable
            | FailureKind::ConnectionLost
            | FailureKind::Overloaded
            | FailureKind::Loading
            | FailureKind::ReadOnly
            | FailureKind::Busy
            | FailureKind::ClusterDown
            | FailureKind::MasterDown
            | FailureKind::NoReplicas
            | FailureKind::TryAgain
    )
}

/// Why [`RedisStore::flush_namespace`](crate::RedisStore::flush_namespace) failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FlushError {
    /// The store uses the server's clock, so it may hold production data. Nothing was deleted.
    ServerClock {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// The namespace is the default one, which other stores may use. Nothing was deleted.
    DefaultNamespace {
        /// The store's namespace.
        namespace: Box<str>,
    },
    /// Some keys may remain.
    Unfinished {
        /// The store's namespace.
        namespace: Box<str>,
        /// The number of keys deleted.
        deleted: u64,
        /// Why the other keys were not deleted.
        failure: Failure,
    },
}

impl fmt::Display for FlushError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FlushError::ServerClock { namespace } => write!(
                f,
                "namespace {namespace:?} not flushed: the store uses the server's clock, so it may hold \
                 production data; use a store with its own clock and namespace"
            ),
            FlushError::DefaultNamespace { namespace } => write!(
                f,
                "namespace {namespace:?} not flushed: it is the default namespace; use a store with its \
                 own namespace"
            ),
            FlushError::Unfinished { namespace, deleted, failure } => write!(
                f,
                "namespace {namespace:?} not flushed completely, {deleted} keys deleted: {failure}; try \
                 again, or let the other keys expire"
            ),
        }
    }
}

impl std::error::Error for FlushError {}
