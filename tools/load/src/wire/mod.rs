//! Requests as bytes, and bytes as replies. No socket is here.

mod counter;
mod cursor;
mod decision;
mod http;
mod resp;
mod template;
#[cfg(test)]
mod tests;

use tollgate::{Id, Timestamp};

pub(crate) use self::http::Http;
pub(crate) use self::resp::Resp;
pub use self::resp::bucket;
use crate::answer::{Answer, Broken, Reply};

/// The first reply, if it is there whole.
pub(crate) type Read = Result<Option<Taken>, Broken>;

/// A reply that was there whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) reply: Reply,
    /// How many bytes of input it was.
    pub(crate) length: usize,
    /// Whether it is the last that comes over its connection.
    pub(crate) is_last: bool,
}

/// How one protocol asks.
#[derive(Clone, Debug)]
pub(crate) enum Wire {
    Http(Http),
    Resp(Resp),
}

impl Wire {
    /// What may be wrong if the other side refuses.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Wire::Http(_) => "is it a tollgate daemon?",
            Wire::Resp(resp) => resp.remedy(),
        }
    }

    /// What a connection begins with, if anything; it has one reply.
    pub(crate) fn greeting(&self) -> Option<&[u8]> {
        match self {
            Wire::Http(_) => None,
            Wire::Resp(resp) => resp.greeting(),
        }
    }

    /// A request that changes nothing, to see whether requests of this kind are answered.
    pub(crate) fn probe(&self) -> &[u8] {
        match self {
            Wire::Http(http) => http.probe(),
            Wire::Resp(resp) => resp.probe(),
        }
    }

    /// Appends the request for a key: `wall` is the caller's time in µs since the epoch, `lease` what
    /// it takes the lease under, if it takes one.
    pub(crate) fn ask(&self, key: u32, wall: u64, lease: Id, out: &mut Vec<u8>) {
        match self {
            Wire::Http(http) => http.ask(key, lease, out),
            Wire::Resp(resp) => resp.ask(key, wall, lease, out),
        }
    }

    /// Appends the request that gives a lease back.
    pub(crate) fn release(&self, key: u32, lease: Id, out: &mut Vec<u8>) {
        match self {
            Wire::Http(http) => http.release(key, lease, out),
            Wire::Resp(resp) => resp.release(key, lease, out),
        }
    }

    /// Reads the first reply, if it is there whole.
    pub(crate) fn read(&self, input: &[u8]) -> Read {
        match self {
            Wire::Http(http) => http.read(input),
            Wire::Resp(resp) => resp.read(input),
        }
    }

    /// The limits that a reply to the probe names.
    pub(crate) fn limits(&self, input: &[u8]) -> Vec<String> {
        match self {
            Wire::Http(http) => http.limits(input),
            Wire::Resp(resp) => resp.limits(input),
        }
    }
}

/// The reason that says that the limits decided.
const BY_LIMITS: &str = "limit";

/// What a decision says, whatever it is written in.
fn answer(allowed: bool, degraded: bool, reason: &str, time: u64, delay: u64) -> Answer {
    // A time that no limiter has is none.
    let time = Some(time).filter(|x| *x < Timestamp::MAX.as_micros());
    Answer { allowed, degraded, by_limits: reason == BY_LIMITS, time, delay }
}
