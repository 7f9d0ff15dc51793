//! Why a command got no answer, as the line that says so.

use tollgate::{RequestError, ResolveError, StoreError};

use crate::access::Refusal;

/// Why a command got no answer: a code for programs, and words with the remedy for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    line: String,
    /// Whether it is about who asks.
    pub(super) is_refusal: bool,
}

impl Failure {
    /// Of a code of its own.
    pub(super) fn of(code: &str, detail: impl AsRef<str>) -> Self {
        Failure { line: format!("{code} {}", detail.as_ref()), is_refusal: false }
    }

    /// What is wrong with the command, and what to write instead.
    pub(super) fn bad(detail: impl AsRef<str>) -> Self {
        Failure::of("ERR", detail)
    }

    /// That a token is needed first.
    pub(super) fn no_token() -> Self {
        let line = "NOAUTH Authentication required; send AUTH TOKEN or AUTH NAME TOKEN first";
        Failure { line: line.to_owned(), is_refusal: true }
    }

    /// The line, without the sign that makes it an error.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Why, without the code.
    pub(super) fn detail(&self) -> &str {
        self.line.split_once(' ').map_or("", |(_, detail)| detail)
    }
}

impl From<Refusal> for Failure {
    fn from(it: Refusal) -> Self {
        Failure { line: format!("NOPERM {it}"), is_refusal: true }
    }
}

impl From<ResolveError> for Failure {
    fn from(it: ResolveError) -> Self {
        Failure::bad(it.to_string())
    }
}

impl From<RequestError> for Failure {
    fn from(it: RequestError) -> Self {
        Failure::bad(it.to_string())
    }
}

impl From<StoreError> for Failure {
    fn from(it: StoreError) -> Self {
        match it {
            StoreError::Request(request) => request.into(),
            // What clients of Redis know as: nothing was done, ask again later.
            other => Failure::of("TRYAGAIN", other.to_string()),
        }
    }
}

/// The most bytes of an argument that an error shows.
const MAX_SHOWN: usize = 64;

/// The beginning of what a peer wrote, in quotes, as a line can show it.
pub(super) fn shown(bytes: &[u8]) -> String {
    let first = bytes.get(..bytes.len().min(MAX_SHOWN)).unwrap_or_default();
    let more = if first.len() < bytes.len() { "…" } else { "" };
    format!("\"{}{more}\"", first.escape_ascii())
}
