//! Keyspace notifications of a primary, and reads of the strings that they name.
//!
//! A server publishes a notification for each change of a key, if its `notify-keyspace-events` says so.
//! Notifications are not stored, and a cluster does not forward them: each primary needs a connection of
//! its own. The connection uses RESP3, so that notifications and replies share it in one order: when a
//! read returns, all notifications of earlier changes have been delivered.

use std::fmt;
use std::sync::Arc;

use redis::{Pipeline, PushInfo, PushKind, Value};
use tokio::sync::Notify;
use tollgate_state::{Failure, FailureKind};

use crate::connection::{CommandError, Connection, PushHandler, into_result};
use crate::extension::{Script, ScriptReply};
use crate::flush_namespace::parse_scan;
use crate::handshake::ServerKind;
use crate::store::RedisStore;
use crate::url::Address;

/// How many keys a `SCAN` visits, which blocks the server for less than a millisecond.
const SCAN_COUNT: &str = "500";

/// A server that has keys: the only one, or a primary of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Primary(Address);

impl fmt::Display for Primary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Primary {
    /// Returns the options with which `redis-cli` connects to it.
    #[must_use]
    pub fn redis_cli_options(&self) -> String {
        match &self.0 {
            Address::Tcp { host, port } => format!("-h {host} -p {port}"),
            Address::Unix(path) => format!("-s {}", path.display()),
        }
    }
}

/// A change of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyEvent<'e> {
    /// The name of the key.
    pub name: &'e [u8],
    /// The server's name of the event, such as `incrby` or `expired`.
    pub event: &'e [u8],
}

/// A read of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StringRequest<'r> {
    /// The name of the key.
    pub name: &'r [u8],
    /// Whether the slot is being migrated to this server.
    pub is_importing: bool,
}

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StringRead {
    /// The key does not exist.
    Absent,
    /// A string.
    Value {
        /// The string.
        value: Vec<u8>,
        /// When it expires, in ms since the Unix epoch, by the server's clock.
        expiry: Option<u64>,
    },
    /// The slot of the key is on another server, or is being migrated.
    Elsewhere,
    /// The key is no string.
    OtherType,
}

/// A connection that receives the notifications of a primary.
#[derive(Debug)]
pub struct Subscription {
    connection: Connection,
    closed: Arc<Notify>,
}

impl RedisStore {
    /// Returns the current primaries.
    ///
    /// # Errors
    /// Returns an error if no server answers, or through a proxy, which forwards no notifications.
    pub async fn primaries(&self) -> Result<Vec<Primary>, Failure> {
        if self.context().server_kind == ServerKind::Proxy {
            let message = "a proxy forwards no notifications: without the option groups, use the URL \
                           of each server behind it";
            return Err(Failure::new(FailureKind::WrongTopology, message));
        }
        Ok(self.slots().await?.nodes.into_iter().map(Primary).collect())
    }

    /// Connects to a primary and subscribes to the changes of keys that match a glob pattern.
    /// `on_event` is called for each of them by the task of the connection, so it must not block.
    ///
    /// # Errors
    /// Returns an error if the server is unavailable, or does not permit `HELLO` or `PSUBSCRIBE`.
    pub async fn subscribe(
        &self,
        primary: &Primary,
        pattern: &[u8],
        on_event: impl Fn(KeyEvent<'_>) + Send + Sync + 'static,
    ) -> Result<Subscription, Failure> {
        let dialer = &self.context().dialer;
        let channel = format!("__keyspace@{}__:", dialer.database()).into_bytes();
        let prefix = channel.clone();
        let on_push: PushHandler = Arc::new(move |push| {
            if let Some(event) = event(&push, &prefix) {
                on_event(event);
            }
        });
        let closed = Arc::new(Notify::new());
        let closing = Arc::clone(&closed);
        let on_close = move || closing.notify_one();
        let connection = dialer.dial_with(&primary.0, on_close, Some(on_push)).await?;
        let subscription = Subscription { connection, closed };
        let words = [b"PSUBSCRIBE".to_vec(), [&channel[..], pattern].concat()];
        subscription.connection.command(&words).await.map_err(|error| error.failure())?;
        Ok(subscription)
    }
}

/// The change that a message reports, if it is a notification.
fn event<'e>(push: &'e PushInfo, prefix: &[u8]) -> Option<KeyEvent<'e>> {
    if push.kind != PushKind::PMessage {
        return None;
    }
    let [_, Value::BulkString(channel), Value::BulkString(event)] = &push.data[..] else {
        return None;
    };
    Some(KeyEvent { name: channel.strip_prefix(prefix)?, event })
}

impl Subscription {
    /// Waits until the connection is closed. Then notifications are lost.
    pub async fn closed(&self) {
        while !self.connection.is_closed() {
            self.closed.notified().await;
        }
    }

    /// Returns `notify-keyspace-events`; absent if the user may not read it.
    ///
    /// # Errors
    /// Returns an error if the connection was lost.
    pub async fn notification_flags(&self) -> Result<Option<String>, Failure> {
        let reply = self.connection.command(&["CONFIG", "GET", "notify-keyspace-events"]).await;
        match reply {
            Ok(Value::Map(pairs)) => match pairs.into_iter().next() {
                Some((_, Value::BulkString(flags))) => {
                    Ok(Some(String::from_utf8_lossy(&flags).into_owned()))
                }
                _ => Ok(None),
            },
            Ok(_) => Err(malformed("CONFIG GET")),
            Err(CommandError::Server(_)) => Ok(None),
            Err(CommandError::Lost(failure)) => Err(failure),
        }
    }

    /// Reads strings. Returns the server's time after the reads, in µs since the Unix epoch, and the
    /// result of each read.
    ///
    /// # Errors
    /// Returns an error if the connection was lost, or if the user may not read.
    pub async fn read_strings(
        &self,
        requests: &[StringRequest<'_>],
    ) -> Result<(u64, Vec<StringRead>), Failure> {
        let mut pipeline = Pipeline::with_capacity(2 * requests.len() + 1);
        for request in requests {
            for command in ["PEXPIRETIME", "GET"] {
                if request.is_importing {
                    pipeline.cmd("ASKING");
                }
                pipeline.cmd(command).arg(request.name);
            }
        }
        pipeline.cmd("TIME");
        let replies = self.connection.pipeline(&pipeline).await;
        let mut replies = replies.map_err(crate::error::from_call)?.into_iter();
        let mut reads = Vec::with_capacity(requests.len());
        for request in requests {
            let mut next = || {
                if request.is_importing {
                    replies.next();
                }
                into_result(Ok(replies.next().unwrap_or(Value::Nil)))
            };
            let (expiry, value) = (next(), next());
            reads.push(string_read(expiry, value)?);
        }
        let time = replies.next().unwrap_or(Value::Nil);
        let [seconds, micros] = redis::from_redis_value_ref::<[u64; 2]>(&time)
            .map_err(|error| Failure::new(FailureKind::Protocol, error.to_string()))?;
        Ok((seconds * 1_000_000 + micros, reads))
    }

    /// Returns some names of strings that match a glob pattern, and the next cursor; `0` is the first
    /// cursor and the end.
    ///
    /// # Errors
    /// Returns an error if the connection was lost, or if the user may not scan.
    pub async fn scan_strings(
        &self,
        cursor: &str,
        pattern: &[u8],
    ) -> Result<(String, Vec<Vec<u8>>), Failure> {
        let [scan, matching, count, kind] = ["SCAN", "MATCH", "COUNT", "TYPE"].map(str::as_bytes);
        let words = [
            scan,
            cursor.as_bytes(),
            matching,
            pattern,
            count,
            SCAN_COUNT.as_bytes(),
            kind,
            b"string",
        ];
        let reply = self.connection.command(&words).await.map_err(|error| error.failure())?;
        parse_scan(reply).ok_or_else(|| malformed("SCAN"))
    }

    /// Runs a script on this server.
    ///
    /// # Errors
    /// As [`RedisStore::run_script`].
    pub async fn run_script(
        &self,
        script: &Script,
        keys: &[Vec<u8>],
        arguments: &[&[u8]],
    ) -> Result<ScriptReply, Failure> {
        let commands = self.connection.commands();
        script.run(&commands, keys, arguments).await.map_err(|error| error.failure())
    }
}

/// The result of a read from the replies to `PEXPIRETIME` and `GET`. The key may have expired or have
/// been created between the two.
fn string_read(
    expiry: Result<Value, CommandError>,
    value: Result<Value, CommandError>,
) -> Result<StringRead, Failure> {
    // A slot may arrive or leave between the two.
    let (expiry, value) = match expiry.and_then(|expiry| Ok((expiry, value?))) {
        Ok(replies) => replies,
        Err(CommandError::Server(server)) => {
            return match server.code() {
                "MOVED" | "ASK" | "TRYAGAIN" | "CLUSTERDOWN" => Ok(StringRead::Elsewhere),
                "WRONGTYPE" => Ok(StringRead::OtherType),
                _ => Err(crate::error::from_server(&server)),
            };
        }
        Err(error) => return Err(error.failure()),
    };
    let value = match value {
        Value::Nil => return Ok(StringRead::Absent),
        Value::BulkString(value) => value,
        _ => return Err(malformed("GET")),
    };
    let Value::Int(expiry) = expiry else { return Err(malformed("PEXPIRETIME")) };
    let expiry = u64::try_from(expiry).ok();
    Ok(StringRead::Value { value, expiry })
}

fn malformed(command: &str) -> Failure {
    Failure::new(FailureKind::Protocol, format!("invalid reply to {command}"))
}
