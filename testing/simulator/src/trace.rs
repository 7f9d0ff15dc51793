//! The trace of a simulation, and the counters of its servers.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::time::Duration;

use fnv::FnvHasher;
use tollgate_testkit::Reply;

/// The hash of all events, and their text if it is kept.
#[derive(Default)]
pub(crate) struct Trace {
    hasher: FnvHasher,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Trace { hasher: FnvHasher::default(), lines: keeps_lines.then(Vec::new) }
    }

    /// Records an event, perhaps on a server and a connection.
    pub(crate) fn record(
        &mut self,
        at: Duration,
        (server, connection): (Option<usize>, Option<u64>),
        what: &str,
        detail: &[u8],
    ) {
        self.hasher.write_u128(at.as_nanos());
        self.hasher.write_usize(server.unwrap_or(usize::MAX));
        self.hasher.write_u64(connection.unwrap_or(u64::MAX));
        self.hasher.write(what.as_bytes());
        self.hasher.write(detail);
        if let Some(lines) = &mut self.lines {
            let server = server.map(|index| format!(" server {index}")).unwrap_or_default();
            let connection = connection.map(|id| format!(" connection {id}")).unwrap_or_default();
            let detail = detail[..detail.len().min(80)].escape_ascii();
            let at = at.as_micros();
            lines.push(format!("{at:>12} µs{server}{connection}: {what} {detail}"));
        }
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hasher.finish()
    }

    pub(crate) fn lines(&self) -> &[String] {
        self.lines.as_deref().unwrap_or_default()
    }
}

/// What a server has done since the start of the simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerStats {
    /// When a client tried to connect, since the start of the simulation, and the index of the client.
    pub dials: Vec<(Duration, usize)>,
    /// When the server accepted each connection, since the start of the simulation.
    pub accepted: Vec<Duration>,
    /// The number of connections closed at once because there were too many.
    pub rejected: u64,
    /// The number of commands by name in lower case, such as `evalsha` and `cluster|slots`, without
    /// those of scripts. Rejected commands count, too.
    pub commands: BTreeMap<&'static str, u64>,
    /// The number of scripts that were executed.
    pub scripts: u64,
}

/// A script that a server executed.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptCall {
    /// When, since the start of the simulation.
    pub at: Duration,
    /// The client, by index.
    pub client: usize,
    /// The connection.
    pub connection: u64,
    /// The keys of the call.
    pub keys: Vec<Vec<u8>>,
    /// The other arguments of the call.
    pub arguments: Vec<Vec<u8>>,
    /// The reply, which may be an error.
    pub reply: Reply,
    /// The fault that the reply met, if any.
    pub fault: Option<ReplyFault>,
}

/// What happens to the reply of a script that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyFault {
    /// The reply is lost, and the connection is reset.
    Cut,
    /// Half of the reply arrives, then the connection is reset.
    Truncate,
    /// The reply and all later ones of the connection never arrive. The connection stays open.
    Stall,
    /// The reply and those behind it arrive later.
    Delay(Duration),
}
