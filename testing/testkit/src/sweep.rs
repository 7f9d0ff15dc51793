//! Keys of a server and their times to live.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Connection, Reply, Server};

/// The keys below a prefix, in every database of a server or all primaries of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Each key with its time to live, `None` if it never expires. Invalid UTF-8 is replaced.
    pub keys: BTreeMap<String, Option<Duration>>,
}

impl Sweep {
    /// The keys that never expire.
    pub fn without_ttl(&self) -> Vec<String> {
        let persistent = self.keys.iter().filter(|(_, ttl)| ttl.is_none());
        persistent.map(|(key, _)| key.clone()).collect()
    }

    /// The longest time to live.
    pub fn max_ttl(&self) -> Option<Duration> {
        self.keys.values().flatten().max().copied()
    }

    /// Asserts that every key expires within `max_ttl`.
    #[track_caller]
    pub fn assert_all_expire_within(&self, max_ttl: Duration) {
        for (key, ttl) in &self.keys {
            assert!(ttl.is_some_and(|ttl| ttl <= max_ttl), "{key} expires after {ttl:?}");
        }
    }
}

impl Server {
    /// The keys that begin with `prefix` in all its databases, and their times to live.
    #[track_caller]
    pub fn sweep(&self, prefix: &str) -> Sweep {
        let mut connection = self.connect();
        let mut sweep = Sweep::default();
        for database in databases(&mut connection) {
            execute(&mut connection, &["SELECT", &database]);
            for key in scan(&mut connection, prefix) {
                let name = String::from_utf8_lossy(&key).into_owned();
                let ttl = execute(&mut connection, &[b"PTTL".as_slice(), &key]).integer();
                // -2: the key has expired since the scan.
                if ttl != -2 {
                    sweep.keys.insert(name, u64::try_from(ttl).ok().map(Duration::from_millis));
                }
            }
        }
        sweep
    }

    /// The keys that begin with `prefix`, in order.
    #[track_caller]
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).keys.into_keys().collect()
    }

    /// The keys that begin with `prefix` and never expire, in order.
    #[track_caller]
    pub fn keys_without_ttl(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).without_ttl()
    }
}

/// The databases that are not empty.
fn databases(connection: &mut Connection) -> Vec<String> {
    let info = execute(connection, &["INFO", "keyspace"]).text();
    let numbers = info.lines().filter_map(|line| line.strip_prefix("db")?.split(':').next());
    numbers.map(String::from).collect()
}

fn scan(connection: &mut Connection, prefix: &str) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = execute(connection, &["SCAN", &cursor, "COUNT", "1000"]);
        let [next, found] = reply.array() else { panic!("not a reply to SCAN: {reply:?}") };
        for key in found.array() {
            if let Reply::Bulk(key) = key
                && key.starts_with(prefix.as_bytes())
            {
                keys.push(key.clone());
            }
        }
        cursor = next.text();
        if cursor == "0" {
            return keys;
        }
    }
}

#[track_caller]
fn execute<Arg: AsRef<[u8]>>(connection: &mut Connection, args: &[Arg]) -> Reply {
    let reply = connection.command(args).expect("the server replies");
    reply.expect_no_error("a command of the sweep")
}
