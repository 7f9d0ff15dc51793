//! Encodes requests and parses replies; performs no I/O.

mod cursor;
mod decision;
mod http;
mod resp;
mod template;
#[cfg(test)]
mod tests;

use tollgate::Id;

pub(crate) use self::http::Http;
pub(crate) use self::resp::Resp;
pub use self::resp::token_bucket;
use crate::reply::ParseResult;

/// A protocol whose replies arrive in the order of the requests.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    Http(Http),
    Resp(Resp),
}

impl Wire {
    /// What the user can check if the probe fails.
    pub(crate) fn hint(&self) -> &'static str {
        match self {
            Wire::Http(_) => "is this a tollgate daemon?",
            Wire::Resp(resp) => resp.hint(),
        }
    }

    /// The first bytes on a connection, if there are any; the server sends one reply.
    pub(crate) fn greeting(&self) -> Option<&[u8]> {
        match self {
            Wire::Http(_) => None,
            Wire::Resp(resp) => resp.greeting(),
        }
    }

    /// A request that changes nothing, to check that the target answers requests of this kind.
    pub(crate) fn probe(&self) -> &[u8] {
        match self {
            Wire::Http(http) => http.probe(),
            Wire::Resp(resp) => resp.probe(),
        }
    }

    /// Appends the check of a key. `wall` is the client's time in µs since the epoch; `lease` is
    /// used under a concurrent limit.
    pub(crate) fn write_check(&self, key: u32, wall: u64, lease: Id, out: &mut Vec<u8>) {
        match self {
            Wire::Http(http) => http.write_check(key, lease, out),
            Wire::Resp(resp) => resp.write_check(key, wall, lease, out),
        }
    }

    /// Appends the release of a lease.
    pub(crate) fn write_release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        match self {
            Wire::Http(http) => http.write_release(key, lease, out),
            Wire::Resp(resp) => resp.write_release(key, lease, out),
        }
    }

    /// Parses the first reply, if it is complete.
    pub(crate) fn parse(&self, input: &[u8]) -> ParseResult {
        match self {
            Wire::Http(http) => http.parse(input),
            Wire::Resp(resp) => resp.parse(input),
        }
    }

    /// The limits in the reply to the probe; empty if it contains none.
    pub(crate) fn limits(&self, input: &[u8]) -> Vec<String> {
        match self {
            Wire::Http(http) => http.limits(input),
            Wire::Resp(resp) => resp.limits(input),
        }
    }
}
