//! The number of groups that keys are divided into, written down in the cluster: who has another
//! number would look for a key in another place than the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use redis::Value;
use tollgate_core::{Micros, Timestamp};
use tollgate_store::{Failure, FailureKind};

use super::Found;
use super::slots::text;
use crate::link::{Fault, Link};
use crate::names::slot;
use crate::node::Common;
use crate::options::RedisOptions;

#[derive(Debug)]
pub(super) struct GroupsCheck {
    name: String,
    slot: u16,
    groups: u16,
    kept_ms: &'static str,
    /// When it was last checked, in µs.
    checked: AtomicU64,
}

/// How long it is kept from the last time that anybody has checked it: 400 days, in ms.
const KEPT_MS: &str = "34560000000";
/// The same where a test or a replay brings the time, which nobody comes back to.
const KEPT_BRIEFLY_MS: &str = "3600000";
/// How often it is checked.
const EVERY: Micros = Micros::from_secs(600);

impl GroupsCheck {
    pub(super) fn new(options: &RedisOptions) -> Self {
        let namespace = &options.namespace;
        GroupsCheck {
            name: format!("{namespace}:{{{namespace}}}:#groups"),
            slot: slot(namespace.as_bytes()),
            groups: options.groups,
            kept_ms: if options.clock.is_some() { KEPT_BRIEFLY_MS } else { KEPT_MS },
            checked: AtomicU64::new(0),
        }
    }

    /// Writes the number down if there is none, else holds it against ours.
    pub(super) async fn check(&self, common: &Common, found: &Found) -> Result<(), Failure> {
        let now = common.clock.now();
        let checked = Timestamp::from_micros(self.checked.load(Ordering::Relaxed));
        if now.duration_since(checked) < EVERY {
            return Ok(());
        }
        let node = found.of_slot(self.slot).ok_or_else(|| {
            Failure::new(FailureKind::ClusterDown, format!("no node has slot {}", self.slot))
        })?;
        let link = common.dialer.dial(node, || ()).await?;
        let stored = self.stored(&link).await.map_err(|error| error.failure())?;
        if stored != self.groups {
            let message = format!("{stored} at {}, and the option says {}", self.name, self.groups);
            return Err(Failure::new(FailureKind::PartitionMismatch, message));
        }
        self.checked.store(now.as_micros(), Ordering::Relaxed);
        Ok(())
    }

    async fn stored(&self, link: &Link) -> Result<u16, Fault> {
        let (name, own) = (self.name.as_str(), self.groups.to_string());
        link.command(&["SET", name, &own, "NX", "PX", self.kept_ms]).await?;
        let stored = match link.command(&["GET", name]).await {
            // Of a foreign type.
            Err(Fault::Server(server)) if server.code() == "WRONGTYPE" => Value::Nil,
            command => command?,
        };
        let stored: Option<u16> = text(&stored).and_then(|x| x.parse().ok());
        match stored {
            Some(stored) => {
                let text = stored.to_string();
                link.command(&["SET", name, &text, "XX", "PX", self.kept_ms]).await?;
                Ok(stored)
            }
            // Nobody of us has written it.
            None => {
                link.command(&["SET", name, &own, "PX", self.kept_ms]).await.map(|_| self.groups)
            }
        }
    }
}
