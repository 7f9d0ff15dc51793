//! Errors of limits, policies and requests. Each message names the value and the remedy.

use alloc::boxed::Box;
use core::fmt;

use crate::limit::precision::nearest_precision;
use crate::limit::spec::Spec;
use crate::notation::NotationError;
use crate::notation::display::Length;
use crate::notation::message::Quoted;
use crate::policy::nearest_name;
use crate::time::Micros;

/// An error for numbers that are not a valid limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitError {
    /// The count is 0.
    ZeroCount,
    /// The window or lease is outside 1 ms to 366 d, or not whole milliseconds.
    Window(Micros),
    /// The burst is 0.
    ZeroBurst,
    /// The offset is not shorter than the window, or not whole milliseconds.
    Offset {
        /// The offset.
        offset: Micros,
        /// The window.
        window: Micros,
    },
    /// The precision does not divide the window into 1 to 4,096 buckets of whole milliseconds.
    Precision {
        /// The precision.
        precision: Micros,
        /// The window.
        window: Micros,
    },
    /// The count of a concurrency limit exceeds 10,000, the most leases of a key.
    Concurrency(u64),
    /// `count-denied` on a kind that does not support it.
    CountDenied,
    /// The products of its numbers reach 2^53, so that decisions would not be exact.
    Inexact {
        /// The limit.
        limit: Spec,
        /// The nearest lower limit that fits.
        nearest: Spec,
    },
}

impl fmt::Display for LimitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitError::ZeroCount => f.write_str("the count is 0; it must be at least 1"),
            LimitError::Window(window) => write!(
                f,
                "the window is {}; windows and leases are whole milliseconds from 1ms to 366d",
                Length(*window)
            ),
            LimitError::ZeroBurst => f.write_str("the burst is 0; it must be at least 1"),
            LimitError::Offset { offset, window } => write!(
                f,
                "the offset is {}; it must be whole milliseconds and shorter than the window of {}",
                Length(*offset),
                Length(*window)
            ),
            LimitError::Precision { precision, window } => write!(
                f,
                "the precision is {}; it must divide the window of {} into 1 to 4096 buckets of \
                 whole milliseconds; the nearest that does is {}",
                Length(*precision),
                Length(*window),
                Length(nearest_precision(*precision, *window))
            ),
            LimitError::Concurrency(count) => {
                write!(f, "{count} in flight are too many; at most 10000 leases are kept a key")
            }
            LimitError::CountDenied => f.write_str(
                "only fixed, sliding and log limits count denied requests; leave out count-denied",
            ),
            LimitError::Inexact { limit, nearest } => write!(
                f,
                "{limit} is too large to be decided exactly; the nearest lower limit that fits is \
                 {nearest}"
            ),
        }
    }
}

impl core::error::Error for LimitError {}

/// An error for a name or limits that are not a valid policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is not a letter followed by letters, digits, `_`, `-` and `.`, 1 to 128 in all.
    Name(Box<str>),
    /// There is no limit.
    NoLimit,
    /// There are more than 16 limits.
    TooManyLimits(usize),
    /// The text is not one of limits.
    Notation(NotationError),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Name(name) => {
                write!(
                    f,
                    "the name {} is invalid: a policy's name is a letter followed by letters, digits, '_', \
                     '-' and '.', at most 128 in all",
                    Quoted(name)
                )?;
                match nearest_name(name) {
                    Some(nearest) => write!(f, "; did you mean {nearest:?}?"),
                    None => Ok(()),
                }
            }
            PolicyError::NoLimit => f.write_str("a policy needs a limit, such as \"10/s\""),
            PolicyError::TooManyLimits(count) => {
                write!(f, "{count} limits are too many for one policy; it has at most 16")
            }
            PolicyError::Notation(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for PolicyError {}

/// An error for a request that cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// There is no check.
    NoCheck,
    /// There are more than 32 checks.
    TooManyChecks(usize),
    /// The operation takes one check.
    OneCheck(&'static str),
    /// The key is empty.
    EmptyKey,
    /// The key is longer than 65,536 bytes.
    LongKey(usize),
    /// The request id is not 1 to 256 bytes.
    RequestId,
    /// The amount to take, refund, penalize or backfill is 0.
    ZeroAmount(&'static str),
    /// The policy has no limit with the index of a backfill.
    NoSuchLimit {
        /// The index, counted from 0.
        limit: u8,
        /// The number of limits.
        count: usize,
    },
    /// The operation is only for token buckets and queues.
    NotReservable(&'static str),
    /// The operation is not for concurrency limits.
    Concurrent(&'static str),
    /// The operation is only for concurrency limits.
    NotConcurrent(&'static str),
    /// A check of a policy with a concurrency limit needs the id of a lease.
    NeedsLease,
    /// The request id was used before with other arguments.
    RequestIdReused,
    /// A settlement has no request id.
    NoRequestId,
    /// No charge is known for the request id and the checks of a settlement.
    UnknownCharge,
    /// The charge was settled before with another cost.
    ChargeSettled,
    /// A settlement has another cost than the check for a policy with a concurrency limit.
    LeaseCost,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::NoCheck => f.write_str("the request has no check; it needs at least one"),
            RequestError::TooManyChecks(count) => {
                write!(f, "{count} checks are too many for one request; at most 32 are decided together")
            }
            RequestError::OneCheck(operation) => {
                write!(f, "{operation} takes one check; send a request for each key")
            }
            RequestError::EmptyKey => {
                f.write_str("the key is empty; it must be 1 to 65536 bytes that name who is limited")
            }
            RequestError::LongKey(len) => {
                write!(f, "the key is {len} bytes long; at most 65536 are taken, so send a hash of it")
            }
            RequestError::RequestId => f.write_str("the request_id must be 1 to 256 bytes"),
            RequestError::ZeroAmount(operation) => {
                write!(f, "{operation} needs an amount of at least 1, but it is 0")
            }
            RequestError::NoSuchLimit { limit, count } => write!(
                f,
                "backfill names the limit at index {limit}, but the policy has {count}; the index must \
                 be below that"
            ),
            RequestError::NotReservable(operation) => write!(
                f,
                "{operation} is for token buckets and queues; this policy has a limit of another kind"
            ),
            RequestError::Concurrent(operation) => {
                write!(f, "{operation} is not for requests in flight; use acquire and release")
            }
            RequestError::NotConcurrent(operation) => write!(
                f,
                "{operation} is for requests in flight; this policy has no concurrent limit, such as \
                 \"20 concurrent lease 60s\""
            ),
            RequestError::NeedsLease => f.write_str(
                "this policy limits requests in flight: a check of it acquires, so it needs a \
                 lease_id of 32 hexadecimal digits",
            ),
            RequestError::RequestIdReused => f.write_str(
                "the request_id was used before with other arguments; use a new one for each request",
            ),
            RequestError::NoRequestId => {
                f.write_str("settle needs the request_id of the check that charged the estimate")
            }
            RequestError::UnknownCharge => f.write_str(
                "no charge with this request_id and these checks is known, so nothing is settled: the \
                 check was denied, had another policy or key, or is older than request ids are \
                 remembered",
            ),
            RequestError::ChargeSettled => f.write_str(
                "the charge with this request_id is settled already, with another cost; the first \
                 settlement counts",
            ),
            RequestError::LeaseCost => f.write_str(
                "settle does not change the cost of a lease; send the cost of the check for each \
                 policy with a concurrent limit",
            ),
        }
    }
}

impl core::error::Error for RequestError {}
