//! A check that all stores of a namespace use the same number of partitions, which is stored in the
//! cluster: with another number, a store would look for keys in the wrong slots.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use redis::Value;
use tokio::time::Instant;
use tollgate_state::{Failure, FailureKind};

use super::discovery::text;
use crate::connection::{CommandChannel, CommandError};
use crate::context::wait_for;
use crate::keyspace::slot;
use crate::node::Node;
use crate::options::RedisOptions;

pub(super) struct PartitionCheck {
    record: Record,
    slot: u16,
    state: State,
    in_progress: Option<BoxFuture<'static, Result<(), CheckError>>>,
    next: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No check has ended yet.
    Unchecked,
    Passed,
    Failed,
}

enum CheckError {
    /// The number is another.
    Mismatch(Failure),
    /// The server that has the number did not answer.
    Unreachable,
}

/// The stored number of partitions.
#[derive(Clone, Debug)]
struct Record {
    name: String,
    partitions: u16,
    expiry_ms: &'static str,
}

/// The expiry of the number, which each check renews: 400 days, in ms.
const EXPIRY_MS: &str = "34560000000";
/// The expiry for tests and replays, which use a namespace once: one hour, in ms.
const REPLAY_EXPIRY_MS: &str = "3600000";
/// The interval between checks.
const INTERVAL: Duration = Duration::from_secs(600);
/// The interval after a check that did not pass.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// How long a check may take. A server that has the number and does not answer must not delay the
/// requests to the others for longer.
const TIMEOUT: Duration = Duration::from_millis(250);

impl PartitionCheck {
    pub(super) fn new(options: &RedisOptions, partitions: u16) -> Self {
        let namespace = &options.namespace;
        let record = Record {
            name: format!("{namespace}:{{{namespace}}}:#groups"),
            partitions,
            expiry_ms: if options.clock.is_some() { REPLAY_EXPIRY_MS } else { EXPIRY_MS },
        };
        let slot = slot(namespace.as_bytes());
        PartitionCheck { record, slot, state: State::Unchecked, in_progress: None, next: None }
    }

    /// Returns the slot of the stored number.
    pub(super) fn slot(&self) -> u16 {
        self.slot
    }

    /// Returns whether requests can be sent: not before the first check, nor after a mismatch.
    pub(super) fn permits_requests(&self) -> bool {
        self.state == State::Passed
    }

    /// Starts a check if it is time. `node` is the server that has the stored number.
    pub(super) fn start(&mut self, node: Option<&Arc<Node>>, now: Instant) {
        if self.in_progress.is_some() || self.next.is_some_and(|next| next > now) {
            return;
        }
        let (record, node) = (self.record.clone(), node.cloned());
        self.in_progress = Some(Box::pin(async move {
            let check = async { record.check(&connected(node).await?).await };
            tokio::time::timeout(TIMEOUT, check).await.unwrap_or(Err(CheckError::Unreachable))
        }));
    }

    /// Waits for the end of a check, and for the time of the next one. Returns an error if the stored
    /// number is another.
    pub(super) async fn wait(check: &mut Option<PartitionCheck>) -> Result<(), Failure> {
        let Some(check) = check else { return std::future::pending().await };
        if check.in_progress.is_none()
            && let Some(next) = check.next
        {
            tokio::time::sleep_until(next).await;
            check.next = None;
            return Ok(());
        }
        let result = wait_for(&mut check.in_progress).await;
        check.in_progress = None;
        let interval = if result.is_ok() { INTERVAL } else { RETRY_INTERVAL };
        check.next = Some(Instant::now() + interval);
        match result {
            Ok(()) => check.state = State::Passed,
            Err(CheckError::Mismatch(failure)) => {
                check.state = State::Failed;
                return Err(failure);
            }
            // An unreachable record is no reason to decide nothing.
            Err(CheckError::Unreachable) if check.state == State::Unchecked => {
                check.state = State::Passed;
            }
            Err(CheckError::Unreachable) => {}
        }
        Ok(())
    }
}

/// Returns a channel for commands to a node, once it is connected.
async fn connected(node: Option<Arc<Node>>) -> Result<CommandChannel, CheckError> {
    let node = node.ok_or(CheckError::Unreachable)?;
    loop {
        if let Some(commands) = node.commands() {
            return Ok(commands);
        }
        if node.failure().is_some() {
            return Err(CheckError::Unreachable);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

impl Record {
    /// Compares the stored number with this store's; stores it if there is none.
    async fn check(&self, commands: &CommandChannel) -> Result<(), CheckError> {
        let unreachable = |_: CommandError| CheckError::Unreachable;
        let Some(stored) = self.read_or_write(commands).await.map_err(unreachable)? else {
            return Ok(());
        };
        if stored != self.partitions {
            let message =
                format!("{} is {stored}, but the option groups is {}", self.name, self.partitions);
            return Err(CheckError::Mismatch(Failure::new(
                FailureKind::PartitionMismatch,
                message,
            )));
        }
        // Reading is enough: a server whose memory is full cannot renew the expiry.
        let text = stored.to_string();
        let _ = commands.command(&["SET", &self.name, &text, "XX", "PX", self.expiry_ms]).await;
        Ok(())
    }

    /// Returns the stored number; stores this store's number if there is none.
    async fn read_or_write(&self, commands: &CommandChannel) -> Result<Option<u16>, CommandError> {
        if let Some(stored) = self.read(commands).await? {
            return Ok(Some(stored));
        }
        let own = self.partitions.to_string();
        let set = ["SET", &self.name, &own, "PX", self.expiry_ms];
        commands.command(&[&set[..], &["NX"]].concat()).await?;
        let stored = self.read(commands).await?;
        if stored.is_none() {
            // Tollgate did not write this value: replace it.
            commands.command(&set).await?;
        }
        Ok(stored)
    }

    async fn read(&self, commands: &CommandChannel) -> Result<Option<u16>, CommandError> {
        let stored = match commands.command(&["GET", &self.name]).await {
            Err(CommandError::Server(error)) if error.code() == "WRONGTYPE" => Value::Nil,
            reply => reply?,
        };
        Ok(text(&stored).and_then(|text| text.parse().ok()))
    }
}
