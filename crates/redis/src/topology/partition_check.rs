//! A check that all stores of a namespace use the same number of partitions, which is stored in the
//! cluster: with another number, a store would look for keys in the wrong slots.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use tollgate_core::{Micros, Timestamp};
use tollgate_store::{Failure, FailureKind};

use super::discovery::text;
use super::slot_map::SlotMap;
use crate::connection::{CommandError, Connection};
use crate::context::StoreContext;
use crate::keyspace::slot;
use crate::options::RedisOptions;

#[derive(Debug)]
pub(super) struct PartitionCheck {
    name: String,
    slot: u16,
    partitions: u16,
    expiry_ms: &'static str,
    /// When the last check succeeded, in µs since the epoch.
    checked: AtomicU64,
}

/// The expiry of the number, which each check renews: 400 days, in ms.
const EXPIRY_MS: &str = "34560000000";
/// The expiry for tests and replays, which use a namespace once: one hour, in ms.
const REPLAY_EXPIRY_MS: &str = "3600000";
/// The interval between checks.
const INTERVAL: Micros = Micros::from_secs(600);

impl PartitionCheck {
    pub(super) fn new(options: &RedisOptions) -> Self {
        let namespace = &options.namespace;
        PartitionCheck {
            name: format!("{namespace}:{{{namespace}}}:#groups"),
            slot: slot(namespace.as_bytes()),
            partitions: options.groups,
            expiry_ms: if options.clock.is_some() { REPLAY_EXPIRY_MS } else { EXPIRY_MS },
            checked: AtomicU64::new(0),
        }
    }

    /// Compares the stored number with this store's; stores it if there is none.
    pub(super) async fn run(&self, context: &StoreContext, slots: &SlotMap) -> Result<(), Failure> {
        let now = context.clock.now();
        let checked = Timestamp::from_micros(self.checked.load(Ordering::Relaxed));
        if now.duration_since(checked) < INTERVAL {
            return Ok(());
        }
        let node = slots.node_of(self.slot).ok_or_else(|| {
            Failure::new(FailureKind::ClusterDown, format!("no node has slot {}", self.slot))
        })?;
        let connection = context.dialer.dial(node, || ()).await?;
        let stored = self.stored(&connection).await.map_err(|error| error.failure())?;
        if stored != self.partitions {
            let message =
                format!("{} is {stored}, but the option groups is {}", self.name, self.partitions);
            return Err(Failure::new(FailureKind::PartitionMismatch, message));
        }
        self.checked.store(now.as_micros(), Ordering::Relaxed);
        Ok(())
    }

    /// Returns the stored number, and renews its expiry.
    async fn stored(&self, connection: &Connection) -> Result<u16, CommandError> {
        let (name, own) = (self.name.as_str(), self.partitions.to_string());
        connection.command(&["SET", name, &own, "NX", "PX", self.expiry_ms]).await?;
        let stored = match connection.command(&["GET", name]).await {
            Err(CommandError::Server(error)) if error.code() == "WRONGTYPE" => Value::Nil,
            reply => reply?,
        };
        let stored: Option<u16> = text(&stored).and_then(|text| text.parse().ok());
        match stored {
            Some(stored) => {
                let text = stored.to_string();
                connection.command(&["SET", name, &text, "XX", "PX", self.expiry_ms]).await?;
                Ok(stored)
            }
            // Tollgate did not write this value: replace it.
            None => {
                connection.command(&["SET", name, &own, "PX", self.expiry_ms]).await?;
                Ok(self.partitions)
            }
        }
    }
}
