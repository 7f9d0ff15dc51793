//! What came of a request.

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) allowed: bool,
    /// Whether a failure of the store decided.
    pub(crate) degraded: bool,
    /// Whether the limits decided, rather than a list or a block.
    pub(crate) by_limits: bool,
    /// The store's time, in µs since the epoch, where the answer says.
    pub(crate) time: Option<u64>,
    /// How many µs to wait before acting.
    pub(crate) delay: u64,
}

impl Answer {
    /// One of a protocol that says no more.
    pub(crate) fn plain(allowed: bool) -> Self {
        Answer { allowed, degraded: false, by_limits: true, time: None, delay: 0 }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Answer(Answer),
    /// The other side said that it could not answer.
    Error(ErrorKind, String),
}

/// Bytes that are no reply: the connection is of no more use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken(pub(crate) &'static str);

/// Why there was no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// No connection could be made.
    Refused,
    /// The connection ended before the answer.
    Lost,
    /// No answer came in time.
    Timeout,
    /// A status of HTTP above 499, `UNAVAILABLE` and the like of gRPC, `TRYAGAIN` of RESP.
    Unavailable,
    /// The request was refused: other errors of the protocol.
    Rejected,
    /// What came was no answer.
    Protocol,
}

impl ErrorKind {
    /// All there are.
    pub const ALL: [ErrorKind; 6] = [
        ErrorKind::Refused,
        ErrorKind::Lost,
        ErrorKind::Timeout,
        ErrorKind::Unavailable,
        ErrorKind::Rejected,
        ErrorKind::Protocol,
    ];

    /// The word that stands for it.
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
