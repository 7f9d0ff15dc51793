//! Encodes requests and parses replies; performs no I/O.

mod cursor;
mod http;
mod resp;
mod template;
#[cfg(test)]
mod tests;

use tollgate::Id;

pub use self::resp::token_bucket;
pub(crate) use self::{resp::parse_greeting_reply, template::Template};
use crate::error::LoadError;
use crate::keys::Keys;
use crate::plan::{CheckSpec, Command, Endpoint};
use crate::reply::ParseResult;

/// The requests of a plan, and the protocol of their replies, which arrive in the order of
/// requests.
#[derive(Clone, Debug)]
pub(crate) struct Wire {
    protocol: Protocol,
    greeting: Option<Vec<u8>>,
    requests: Requests,
}

#[derive(Clone, Copy, Debug)]
enum Protocol {
    Http,
    Resp(Command),
}

#[derive(Clone, Debug)]
struct Requests {
    probe: Template,
    check: Template,
    /// Empty for commands without leases.
    release: Template,
}

/// The windows of a plain counter, in µs.
const MINUTE: u64 = 60_000_000;

impl Wire {
    pub(crate) fn http(
        endpoint: &Endpoint,
        check: &CheckSpec,
        keys: &Keys,
        has_leases: bool,
    ) -> Self {
        let requests = http::requests(endpoint, check, keys, has_leases);
        Wire { protocol: Protocol::Http, greeting: None, requests }
    }

    /// # Errors
    /// The command cannot express the limits.
    pub(crate) fn resp(
        endpoint: &Endpoint,
        command: Command,
        check: &CheckSpec,
        keys: &Keys,
        has_leases: bool,
    ) -> Result<Self, LoadError> {
        let requests = resp::requests(command, check, keys, has_leases)?;
        Ok(Wire { protocol: Protocol::Resp(command), greeting: resp::greeting(endpoint), requests })
    }

    /// What the user can check if the probe fails.
    pub(crate) fn hint(&self) -> &'static str {
        match self.protocol {
            Protocol::Http => "is this a tollgate daemon?",
            Protocol::Resp(Command::Counter { .. }) => {
                "--threshold needs a Redis server; omit it to test a tollgate daemon"
            }
            Protocol::Resp(_) => {
                "is this a tollgate daemon? a plain Redis server needs --threshold"
            }
        }
    }

    /// The first bytes on a connection, if there are any; the server sends one reply.
    pub(crate) fn greeting(&self) -> Option<&[u8]> {
        self.greeting.as_deref()
    }

    /// A request that changes nothing, to check that the target answers requests of this kind.
    pub(crate) fn probe(&self) -> &[u8] {
        self.requests.probe.bytes()
    }

    /// Appends the check of a key. `wall` is the client's time in µs since the epoch; `lease` is
    /// used under a concurrent limit.
    pub(crate) fn write_check(&self, key: u32, wall: u64, lease: Id, out: &mut Vec<u8>) {
        self.requests.check.write(key, wall / MINUTE, lease, out);
    }

    /// Appends the release of a lease.
    pub(crate) fn write_release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        self.requests.release.write(key, 0, lease, out);
    }

    /// Parses the first reply, if it is complete.
    pub(crate) fn parse(&self, input: &[u8]) -> ParseResult {
        match self.protocol {
            Protocol::Http => http::parse(input),
            Protocol::Resp(command) => resp::parse(command, input),
        }
    }

    /// The limits in the reply to the probe; empty if it contains none.
    pub(crate) fn limits(&self, input: &[u8]) -> Vec<String> {
        match self.protocol {
            Protocol::Http => http::limits(input),
            Protocol::Resp(_) => resp::limits(input),
        }
    }
}
