//! Replies to requests, and the errors in place of one.

use tollgate::Timestamp;

/// What a server decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) allowed: bool,
    /// Whether the server decided without its store.
    pub(crate) degraded: bool,
    /// Whether the limits decided, rather than a list or a block.
    pub(crate) by_limits: bool,
    /// The store's time in µs since the epoch, if the reply contains it.
    pub(crate) time: Option<u64>,
    /// How many µs the client must wait before it proceeds.
    pub(crate) delay: u64,
}

/// The `reason` of a decision by limits.
const BY_LIMITS: [&str; 2] = ["ok", "limit"];

impl Decision {
    /// A decision in a protocol that reports nothing else.
    pub(crate) fn from_allowed(allowed: bool) -> Self {
        Decision { allowed, degraded: false, by_limits: true, time: None, delay: 0 }
    }

    /// A decision with the fields of the daemon's interface.
    pub(crate) fn from_fields(
        allowed: bool,
        degraded: bool,
        reason: &str,
        time: u64,
        delay: u64,
    ) -> Self {
        // No limiter has a time beyond the largest timestamp: it is noise.
        let time = Some(time).filter(|micros| *micros < Timestamp::MAX.as_micros());
        Decision { allowed, degraded, by_limits: BY_LIMITS.contains(&reason), time, delay }
    }
}

/// A complete reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Decision(Decision),
    /// The server reported an error.
    Error(RequestError),
}

/// A reply parsed from the start of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ParsedReply {
    pub(crate) reply: Reply,
    /// The length of the reply in bytes.
    pub(crate) length: usize,
    /// Whether the server closes the connection after this reply.
    pub(crate) is_last: bool,
}

/// The first reply in the input; `None` while it is incomplete.
pub(crate) type ParseResult = Result<Option<ParsedReply>, ProtocolError>;

/// The input is not a reply; the connection cannot be used any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) &'static str);

/// A request that got no decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RequestError {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
}

impl RequestError {
    pub(crate) fn new(kind: ErrorKind, message: impl ToString) -> Self {
        RequestError { kind, message: message.to_string() }
    }

    pub(crate) fn timeout() -> Self {
        RequestError::new(ErrorKind::Timeout, "no response within --timeout")
    }
}

impl From<ProtocolError> for RequestError {
    fn from(error: ProtocolError) -> Self {
        RequestError::new(ErrorKind::Protocol, error.0)
    }
}

/// Why a request got no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// The connection was refused.
    Refused,
    /// The connection ended before the response.
    Lost,
    /// The response did not arrive in time.
    Timeout,
    /// HTTP status 500 or above, gRPC `UNAVAILABLE` and similar codes, RESP `TRYAGAIN`.
    Unavailable,
    /// The server rejected the request: any other error of the protocol.
    Rejected,
    /// The response violates the protocol.
    Protocol,
}

impl ErrorKind {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Refused => "refused",
            ErrorKind::Lost => "lost",
            ErrorKind::Timeout => "timeout",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::Rejected => "rejected",
            ErrorKind::Protocol => "protocol",
        }
    }
}
