//! Erasing a namespace: every key of it, on every primary, and no other.
//!
//! A pass goes over all servers. On a cluster one may miss keys that moved meanwhile, so it counts
//! only if no slot of ours was on the move before it and after it. Where a slot stays halfway, keys
//! only go from the one to the other: two passes that find none, over both, have missed none.

mod error;
mod primary;

use std::time::Duration;

use tollgate_store::{Failure, FailureKind, StoreError};

pub use error::FlushError;
use primary::Primary;

use crate::options::DEFAULT_NAMESPACE;
use crate::store::RedisStore;
use crate::topology::{self, Found};
use crate::url::Address;

/// How often it is tried, and what is waited between: long enough for a replica to take over.
const MAX_PASSES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// What a pass has come to.
#[derive(Debug, Default)]
struct Pass {
    /// Over all passes.
    erased: u64,
    found_any: bool,
    /// Whether keys may have moved past it.
    is_moving: bool,
}

impl RedisStore {
    /// Erases the store's namespace: deletes every key of it on every primary, and says how many
    /// there were. It is for what is over, such as a replayed log or a test; what such a store
    /// leaves expires by itself, but only after an hour or, if that is longer, what its limits last.
    ///
    /// It is refused to a store that decides by its server's clock and to one with the default
    /// namespace: what others may count on cannot be erased by mistake. What is asked of the
    /// namespace meanwhile, or is under way still, may leave keys behind.
    ///
    /// The servers are asked for every key that they have, also for those of others (`SCAN`): about a
    /// second for each million, in steps of less than a millisecond, between which they serve others.
    /// It goes on while slots move and replicas take over, and gives up after some ten seconds of
    /// waiting. The user needs `+scan` and `+unlink` besides.
    ///
    /// # Errors
    /// The store has no clock of its own or the default namespace, or keys may be left, for the
    /// reason that is told. It may then be called again.
    ///
    /// # Example
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use tollgate_redis::{RedisOptions, RedisStore};
    /// use tollgate_store::ManualClock;
    ///
    /// let options = RedisOptions {
    ///     namespace: "trial-7".to_owned(),
    ///     clock: Some(ManualClock::default()),
    ///     ..RedisOptions::default()
    /// };
    /// let store = RedisStore::open("redis://127.0.0.1", options)?;
    /// println!("{} keys are gone", store.flush_namespace().await?);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn flush_namespace(&self) -> Result<u64, FlushError> {
        let options = &self.common().options;
        let namespace: Box<str> = options.namespace.as_str().into();
        if options.clock.is_none() {
            return Err(FlushError::ServerClock { namespace });
        }
        if *namespace == *DEFAULT_NAMESPACE {
            return Err(FlushError::DefaultNamespace { namespace });
        }
        let mut pass = Pass::default();
        match self.erase_patiently(&mut pass).await {
            Ok(()) => Ok(pass.erased),
            Err(failure) => Err(FlushError::Unfinished { namespace, erased: pass.erased, failure }),
        }
    }

    async fn erase_patiently(&self, pass: &mut Pass) -> Result<(), Failure> {
        let mut was_empty = false;
        let mut last = on_the_move();
        for number in 0..MAX_PASSES {
            if number > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            *pass = Pass { erased: pass.erased, ..Pass::default() };
            match self.erase_once(pass).await {
                Ok(()) if !pass.is_moving || (was_empty && !pass.found_any) => return Ok(()),
                Ok(()) => (was_empty, last) = (!pass.found_any, on_the_move()),
                Err(error) if may_pass(error.kind) => (was_empty, last) = (false, error),
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn erase_once(&self, pass: &mut Pass) -> Result<(), Failure> {
        let found = self.primaries().await?;
        let mut primaries = Vec::new();
        for address in &found.nodes {
            primaries.push(Primary::dial(self.common(), address).await?);
        }
        for to in self.destinations(&found, &primaries).await? {
            pass.is_moving = true;
            // It need not be a primary of any slot yet.
            if !primaries.iter().any(|primary| primary.is_at(&to)) {
                primaries.push(Primary::dial(self.common(), &to).await?);
            }
        }
        for primary in &primaries {
            primary.erase(pass).await?;
        }
        for to in self.destinations(&found, &primaries).await? {
            pass.is_moving = true;
            if !primaries.iter().any(|primary| primary.is_at(&to)) {
                return Err(on_the_move());
            }
        }
        Ok(())
    }

    /// Who has keys, as they say now.
    async fn primaries(&self) -> Result<Found, Failure> {
        match self.ready().await {
            Err(StoreError::Unavailable(failure)) => return Err(failure),
            Err(error) => return Err(Failure::new(FailureKind::Rejected, error.to_string())),
            Ok(()) => {}
        }
        let nodes: Vec<Address> =
            self.routes().nodes().iter().map(|node| node.address().clone()).collect();
        if self.common().names.has_groups() {
            return topology::ask_for_slots(self.common(), &nodes).await;
        }
        nodes.into_iter().next().map(Found::one).ok_or_else(|| {
            Failure::new(FailureKind::Unreachable, "it is not known who is the primary")
        })
    }

    /// Where slots of the namespace are just being moved to.
    async fn destinations(
        &self,
        found: &Found,
        primaries: &[Primary<'_>],
    ) -> Result<Vec<Address>, Failure> {
        let mut destinations = Vec::new();
        for (tag, slot) in self.common().names.tags() {
            let owner = found.of_slot(slot);
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

fn on_the_move() -> Failure {
    Failure::new(FailureKind::TryAgain, "keys of the namespace were on the move all the while")
}

/// Whether it may be over in a moment.
fn may_pass(kind: FailureKind) -> bool {
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
