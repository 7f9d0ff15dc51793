//! A server without its process and its connections: the data, the role, and which commands it
//! executes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tollgate_testkit::Reply;

use crate::commands::{self, ALLOW_BUSY, Command, DENY_OOM, Error, NO_AUTH, STALE, WRITE};
use crate::keyspace::{Entry, Keyspace};
use crate::slots::ClusterView;

/// The number of databases of a server that is not a node of a cluster.
const DATABASES: usize = 16;
/// 2026-01-01T00:00:00Z, when every simulation starts, in µs since the epoch.
pub(crate) const EPOCH: u64 = 1_767_225_600_000_000;

/// The state of a server that commands read and change.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) index: usize,
    pub(crate) databases: Vec<Keyspace>,
    /// The SHA-1 of each loaded script.
    pub(crate) scripts: BTreeSet<String>,
    /// The name of each loaded function, which is data: replicas have it, and it survives a restart.
    pub(crate) functions: BTreeSet<String>,
    pub(crate) script_runs: u64,
    pub(crate) login: Option<Login>,
    pub(crate) refusal: Option<Refusal>,
    /// The primary of a replica.
    pub(crate) primary: Option<usize>,
    pub(crate) is_loading: bool,
    /// The time since the start of the simulation.
    pub(crate) now: Duration,
    /// The difference of the server's clock, in µs.
    pub(crate) clock_offset: i64,
    pub(crate) cluster: Option<ClusterView>,
    /// On a sentinel: the primary of each name.
    pub(crate) masters: BTreeMap<String, usize>,
    is_sentinel: bool,
    /// Whether to record effects, for replicas.
    pub(crate) records_effects: bool,
    pub(crate) effects: Vec<Effect>,
    /// Whether the node is repeating the effects of its primary, which alone decides what expires.
    is_applying: bool,
}

/// A user and a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) user: String,
    pub(crate) password: String,
}

/// A change of data, which a replica repeats.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Command {
        database: usize,
        words: Vec<Vec<u8>>,
    },
    /// A key that was migrated to the server, or with `None` from it.
    Migration {
        key: Vec<u8>,
        entry: Option<Entry>,
    },
}

/// The state of a connection that commands read and change.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    pub(crate) id: u64,
    pub(crate) is_authenticated: bool,
    pub(crate) database: usize,
    pub(crate) name: Vec<u8>,
    /// Whether `ASKING` was the previous command.
    pub(crate) is_asking: bool,
}

impl Session {
    /// Returns the session of a script's commands.
    pub(crate) fn for_script(&self) -> Session {
        Session { is_authenticated: true, name: Vec::new(), ..self.clone() }
    }
}

/// A condition in which a server rejects commands before it executes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// `OOM`: commands that need memory, because it is full.
    OutOfMemory,
    /// `READONLY`: writes, as on a replica.
    ReadOnly,
    /// `NOREPLICAS`: writes, because too few replicas are connected.
    TooFewReplicas,
    /// `MISCONF`: writes, because the last snapshot failed.
    DiskError,
    /// `MASTERDOWN`: most commands, because the replica has lost its primary.
    PrimaryLost,
    /// `BUSY`: most commands, because a script has been running for too long.
    Busy,
}

const OUT_OF_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";
const READ_ONLY: &str = "READONLY You can't write against a read only replica.";
const TOO_FEW_REPLICAS: &str = "NOREPLICAS Not enough good replicas to write.";
const DISK_ERROR: &str = "MISCONF Redis is configured to save RDB snapshots, but it's currently \
    unable to persist to disk. Commands that may modify the data set are disabled, because this \
    instance is configured to report errors during writes if RDB snapshotting fails \
    (stop-writes-on-bgsave-error option). Please check the Redis logs for details about the RDB \
    error.";
const PRIMARY_LOST: &str =
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.";
const BUSY: &str =
    "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.";
const LOADING: &str = "LOADING Redis is loading the dataset in memory";
const NOT_AUTHENTICATED: &str = "NOAUTH Authentication required.";

impl Refusal {
    /// Returns the error of a command with these flags, if it is rejected.
    fn rejection(self, flags: u16) -> Option<&'static str> {
        let has = |flag| flags & flag != 0;
        match self {
            Refusal::OutOfMemory => has(DENY_OOM).then_some(OUT_OF_MEMORY),
            Refusal::ReadOnly => has(WRITE).then_some(READ_ONLY),
            Refusal::TooFewReplicas => has(WRITE).then_some(TOO_FEW_REPLICAS),
            Refusal::DiskError => has(WRITE).then_some(DISK_ERROR),
            Refusal::PrimaryLost if has(WRITE) => Some(READ_ONLY),
            Refusal::PrimaryLost => (!has(STALE)).then_some(PRIMARY_LOST),
            Refusal::Busy => (!has(ALLOW_BUSY)).then_some(BUSY),
        }
    }
}

/// The kind of a server.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Single,
    ClusterNode(ClusterView),
    Sentinel,
}

impl Node {
    pub(crate) fn new(index: usize, kind: Kind) -> Self {
        let is_sentinel = matches!(kind, Kind::Sentinel);
        let cluster = if let Kind::ClusterNode(view) = kind { Some(view) } else { None };
        let mut node = Node {
            index,
            databases: Vec::new(),
            scripts: BTreeSet::new(),
            functions: BTreeSet::new(),
            script_runs: 0,
            login: None,
            refusal: None,
            primary: None,
            is_loading: false,
            now: Duration::ZERO,
            clock_offset: 0,
            cluster,
            masters: BTreeMap::new(),
            is_sentinel,
            records_effects: false,
            effects: Vec::new(),
            is_applying: false,
        };
        node.clear();
        node
    }

    /// Deletes all data.
    pub(crate) fn clear(&mut self) {
        self.functions.clear();
        let count = if self.is_cluster() { 1 } else { DATABASES };
        self.databases = vec![Keyspace::new(self.is_cluster()); count];
    }

    pub(crate) fn is_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    pub(crate) fn is_sentinel(&self) -> bool {
        self.is_sentinel
    }

    /// Returns the time of the server's clock, in µs since the epoch.
    pub(crate) fn now_micros(&self) -> u64 {
        let elapsed = u64::try_from(self.now.as_micros()).expect("the time fits u64");
        (EPOCH + elapsed).saturating_add_signed(self.clock_offset)
    }

    /// Returns the time at which the node considers keys expired, in ms since the epoch.
    pub(crate) fn expiry_time(&self) -> u64 {
        if self.is_applying { 0 } else { self.now_micros() / 1_000 }
    }

    /// Returns whether the first database has a key that has not expired.
    pub(crate) fn has_key(&self, key: &[u8]) -> bool {
        self.databases[0].get(key, self.expiry_time()).is_some()
    }

    /// Returns why the server rejects writes or more; a replica rejects writes.
    fn refusal(&self) -> Option<Refusal> {
        self.refusal.or_else(|| self.primary.map(|_| Refusal::ReadOnly))
    }

    pub(crate) fn is_logged_in(&self, session: &Session) -> bool {
        session.is_authenticated || self.login.is_none()
    }

    /// Executes a command; returns its name, which is empty if there is no such command.
    pub(crate) fn execute(
        &mut self,
        session: &mut Session,
        words: &[Vec<u8>],
    ) -> (&'static str, Reply) {
        let found = Command::find(words, self.is_sentinel);
        let name = found.as_ref().map_or("", |command| command.name);
        let outcome = found.and_then(|command| {
            self.admit(command, session, words)?;
            command.run(self, session, words)
        });
        // `ASKING` is valid for the next command only.
        session.is_asking &= name == "asking";
        (name, outcome.unwrap_or_else(|error| Reply::Error(error.into())))
    }

    /// Checks whether the server executes a command now, in the order in which Redis does.
    fn admit(&self, command: &Command, session: &Session, words: &[Vec<u8>]) -> Result<(), Error> {
        command.check_arity(words)?;
        if !command.has(NO_AUTH) && !self.is_logged_in(session) {
            return Err(NOT_AUTHENTICATED.into());
        }
        if let Some(cluster) = &self.cluster {
            let keys = command.keys(words);
            let routed = cluster.route(keys, session.is_asking, |key| self.has_key(key));
            routed.map_err(|redirection| redirection.text())?;
        }
        let flags = command.flags(words, self);
        let refused = self.refusal().and_then(|refusal| refusal.rejection(flags));
        if let Some(error) = refused {
            return Err(error.into());
        }
        if self.is_loading && !command.has(commands::LOADING) {
            return Err(LOADING.into());
        }
        Ok(())
    }

    /// Repeats the changes of the primary.
    pub(crate) fn apply(&mut self, effects: &[Effect]) {
        self.is_applying = true;
        for effect in effects {
            match effect {
                Effect::Command { database, words } => {
                    let command = Command::find(words, false).expect("a replicated command exists");
                    let mut session = Session { database: *database, ..Session::default() };
                    let outcome = command.run(self, &mut session, words);
                    outcome.expect("a command that the primary executed has no error");
                }
                Effect::Migration { key, entry: Some(entry) } => {
                    self.databases[0].insert(key, entry.clone());
                }
                Effect::Migration { key, entry: None } => {
                    self.databases[0].remove(key, 0);
                }
            }
        }
        self.is_applying = false;
    }
}
