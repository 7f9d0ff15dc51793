//! What keys a server holds, and whether they expire.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Connection, Server};

/// The keys below a prefix, in every database of a server or all primaries of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Each with the time until it expires; nothing if it never does. What is no UTF-8 is replaced.
    pub keys: BTreeMap<String, Option<Duration>>,
}

impl Sweep {
    /// The keys that never expire.
    pub fn without_ttl(&self) -> Vec<String> {
        let forever = self.keys.iter().filter(|(_, ttl)| ttl.is_none());
        forever.map(|(key, _)| key.clone()).collect()
    }

    /// The time until the last of those that expire does so.
    pub fn longest(&self) -> Option<Duration> {
        self.keys.values().flatten().max().copied()
    }

    /// # Panics
    ///
    /// If a key never expires, or only after more than `longest`.
    #[track_caller]
    pub fn assert_all_expire_within(&self, longest: Duration) {
        for (key, ttl) in &self.keys {
            assert!(ttl.is_some_and(|ttl| ttl <= longest), "{key} expires after {ttl:?}");
        }
    }

    fn of(server: &Server, prefix: &str) -> Self {
        let mut connection = server.connect();
        let mut sweep = Self::default();
        for database in databases(&mut connection) {
            asked(&mut connection, &["SELECT", &database]);
            for key in scan(&mut connection, prefix) {
                let name = String::from_utf8_lossy(&key).into_owned();
                let ttl = asked(&mut connection, &[b"PTTL".as_slice(), &key]).integer();
                // A key that has gone since it was seen answers -2.
                if ttl != -2 {
                    sweep.keys.insert(name, u64::try_from(ttl).ok().map(Duration::from_millis));
                }
            }
        }
        sweep
    }
}

impl Server {
    /// The keys that begin with `prefix` in all its databases, and their times to live.
    ///
    /// # Panics
    ///
    /// If the server does not serve.
    #[track_caller]
    pub fn sweep(&self, prefix: &str) -> Sweep {
        Sweep::of(self, prefix)
    }

    /// The keys that begin with `prefix`, in order.
    ///
    /// # Panics
    ///
    /// If the server does not serve.
    #[track_caller]
    pub fn keys(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).keys.into_keys().collect()
    }

    /// Those of them that never expire.
    ///
    /// # Panics
    ///
    /// If the server does not serve.
    #[track_caller]
    pub fn keys_without_ttl(&self, prefix: &str) -> Vec<String> {
        self.sweep(prefix).without_ttl()
    }
}

/// The databases that hold something.
fn databases(connection: &mut Connection) -> Vec<String> {
    let info = asked(connection, &["INFO", "keyspace"]).text();
    let numbers = info.lines().filter_map(|line| line.strip_prefix("db")?.split(':').next());
    numbers.map(String::from).collect()
}

fn scan(connection: &mut Connection, prefix: &str) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut cursor = "0".to_owned();
    loop {
        let reply = asked(connection, &["SCAN", &cursor, "COUNT", "1000"]);
        let [next, found] = reply.array() else { panic!("not a scan: {reply:?}") };
        for key in found.array() {
            if let crate::Reply::Bulk(key) = key
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
fn asked<Word: AsRef<[u8]>>(connection: &mut Connection, words: &[Word]) -> crate::Reply {
    let reply = connection.command(words).expect("the server answers");
    reply.expect_no_error("a command of the sweep")
}
