//! The processes that share a namespace, which each process announces in the store.
//!
//! The record is a hash with one field per process: a number that its heartbeats change. Processes
//! compare the numbers with those that they read before, by their own clocks, so neither the clock of
//! the server nor those of other processes matter.

use std::time::Duration;

use futures_util::future::join;
use redis::Value;
use tollgate_algorithms::Id;
use tollgate_state::{Failure, FailureKind};

use crate::connection::CommandError;
use crate::store::RedisStore;

/// The partition that has the record.
const PARTITION: u16 = 0;
/// How long the record outlives the last heartbeat.
const EXPIRY: Duration = Duration::from_secs(60);

impl RedisStore {
    /// Returns whether the store has a clock of its own, as for tests and replays. Its namespace is
    /// then not shared.
    #[must_use]
    pub fn has_own_clock(&self) -> bool {
        self.context().options.clock.is_some()
    }

    /// Announces a process with a number that differs from its previous one; returns the number of
    /// each announced process, its own included.
    ///
    /// # Errors
    /// Returns an error if the server of the record is unavailable or rejects a command.
    pub async fn announce(&self, process: Id, heartbeat: u64) -> Result<Vec<(Id, u64)>, Failure> {
        let commands = self.member_commands()?;
        let failure = |error: CommandError| error.failure();
        let name = self.context().keyspace.members(PARTITION);
        let time = commands.command(&["TIME"]).await.map_err(failure)?;
        let expires_at = (millis(&time)? + EXPIRY.as_millis()).to_string();
        let (process, heartbeat) = (process.to_string(), heartbeat.to_string());
        let set = [b"HSET", &name[..], process.as_bytes(), heartbeat.as_bytes()];
        let expire = [b"PEXPIREAT", &name[..], expires_at.as_bytes()];
        let read = [&b"HGETALL"[..], &name];
        // The commands share a connection, which keeps their order.
        let written = join(commands.command(&set), commands.command(&expire));
        let ((set, expire), members) = join(written, commands.command(&read)).await;
        set.and(expire).map_err(failure)?;
        parse(&members.map_err(failure)?)
    }

    /// Removes processes that have ended from the record. One that is alive announces itself again.
    ///
    /// # Errors
    /// As [`announce`](Self::announce).
    pub async fn remove_processes(&self, processes: &[Id]) -> Result<(), Failure> {
        let name = self.context().keyspace.members(PARTITION);
        let mut words = vec![b"HDEL".to_vec(), name];
        words.extend(processes.iter().map(|process| process.to_string().into_bytes()));
        let removed = self.member_commands()?.command(&words).await;
        removed.map(|_| ()).map_err(|error| error.failure())
    }

    fn member_commands(&self) -> Result<crate::connection::CommandChannel, Failure> {
        let node = self.routes().node_of(PARTITION);
        let commands = node.as_ref().and_then(|node| node.commands());
        commands.ok_or_else(|| {
            let failure = node.and_then(|node| node.failure());
            failure.unwrap_or_else(|| Failure::new(FailureKind::Unreachable, "not connected"))
        })
    }
}

fn millis(time: &Value) -> Result<u128, Failure> {
    let [seconds, micros] = redis::from_redis_value_ref::<[u64; 2]>(time).map_err(protocol)?;
    Ok(u128::from(seconds) * 1_000 + u128::from(micros) / 1_000)
}

/// Reads the record. Fields that are not of a process are ignored.
fn parse(reply: &Value) -> Result<Vec<(Id, u64)>, Failure> {
    let fields: Vec<(String, String)> = redis::from_redis_value_ref(reply).map_err(protocol)?;
    let member = |(id, number): &(String, String)| Some((id.parse().ok()?, number.parse().ok()?));
    Ok(fields.iter().filter_map(member).collect())
}

fn protocol(error: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Protocol, error.to_string())
}
