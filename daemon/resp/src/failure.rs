//! Error replies.

use tollgate_engine::{Error, ErrorKind};

/// An error reply: a code for programs, and a message with the remedy for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    line: String,
    /// Whether the client lacks a right.
    pub(super) is_denial: bool,
}

impl Failure {
    /// A failure with a code of its own.
    pub(super) fn new(code: &str, detail: impl AsRef<str>) -> Self {
        Failure { line: format!("{code} {}", detail.as_ref()), is_denial: false }
    }

    /// An invalid command; `detail` says how to fix it.
    pub(super) fn bad(detail: impl AsRef<str>) -> Self {
        Failure::new("ERR", detail)
    }

    /// The command needs a token.
    pub(super) fn unauthenticated() -> Self {
        let detail = "Authentication required; send AUTH TOKEN or AUTH NAME TOKEN first";
        Failure { is_denial: true, ..Failure::new("NOAUTH", detail) }
    }

    /// The line, without the `-` that marks an error.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// The message without the code.
    pub(super) fn detail(&self) -> &str {
        match self.line.split_once(' ') {
            Some((_, detail)) => detail,
            None => unreachable!("a line begins with a code and a space"),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let code = match error.kind() {
            ErrorKind::Unauthenticated => "NOAUTH",
            ErrorKind::NotOperator | ErrorKind::InsufficientToken => "NOPERM",
            // Redis clients understand this code as: nothing was executed, retry later.
            ErrorKind::StoreUnavailable => "TRYAGAIN",
            ErrorKind::BadRequest
            | ErrorKind::UnknownPolicy
            | ErrorKind::RequestIdReused
            | ErrorKind::UnknownCharge
            | ErrorKind::ChargeSettled => "ERR",
        };
        let detail = error.detail();
        let failure = match error.kind() {
            // Otherwise a client could take "the server" of the detail for the daemon.
            ErrorKind::StoreUnavailable => {
                Failure::new(code, format!("store unavailable: {detail}"))
            }
            _ => Failure::new(code, detail),
        };
        Failure { is_denial: error.is_denial(), ..failure }
    }
}

/// Bytes that are not RESP; the connection cannot continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProtocolError(pub(super) String);

impl ProtocolError {
    pub(super) fn new(detail: impl Into<String>) -> Self {
        ProtocolError(detail.into())
    }
}

/// The longest argument that an error quotes in full, in bytes.
const MAX_QUOTED_BYTES: usize = 64;

/// The beginning of an argument, in quotes and on one line.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let (prefix, rest) = bytes.split_at(bytes.len().min(MAX_QUOTED_BYTES));
    let ellipsis = if rest.is_empty() { "" } else { "…" };
    format!("\"{}{ellipsis}\"", prefix.escape_ascii())
}
