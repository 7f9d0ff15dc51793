//! Queries and their errors.

use std::fmt;

use tollgate_state::Failure;

use crate::record::KeyUsage;

/// The order of keys. Keys of equal rank follow one another by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The key with the latest request first.
    Newest,
    /// The key whose last request is longest ago first.
    Oldest,
    /// The key with the most requests, allowed and denied, first.
    MostUsed,
    /// The key with the most denials first. Keys without denials are left out.
    MostDenied,
}

impl Order {
    /// Every order.
    pub const ALL: [Order; 4] = [Order::Newest, Order::Oldest, Order::MostUsed, Order::MostDenied];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Order::Newest => "newest",
            Order::Oldest => "oldest",
            Order::MostUsed => "most-used",
            Order::MostDenied => "most-denied",
        }
    }

    /// The order of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Order::ALL.into_iter().find(|order| order.as_str() == name)
    }

    /// Whether greater ranks come first.
    pub(crate) fn is_descending(self) -> bool {
        self != Order::Oldest
    }

    /// Whether it orders by totals.
    pub(crate) fn needs_usage(self) -> bool {
        matches!(self, Order::MostUsed | Order::MostDenied)
    }
}

/// The most keys of a page.
pub const MAX_PAGE: usize = 500;

/// A query of the keys of a policy.
#[derive(Clone, Copy, Debug)]
pub struct KeysQuery<'q> {
    /// The name of the policy.
    pub policy: &'q str,
    /// The order.
    pub order: Order,
    /// What keys begin with; empty for all keys.
    pub prefix: &'q [u8],
    /// Where the previous page ended.
    pub cursor: Option<&'q str>,
    /// The most keys to return, from 1 to [`MAX_PAGE`].
    pub limit: usize,
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The keys in order.
    pub keys: Vec<KeyUsage>,
    /// The cursor of the next page; absent if there are no more keys.
    pub next: Option<String>,
}

/// A position in an order: after the key of this rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) rank: u64,
    pub(crate) key: Box<[u8]>,
}

/// Why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueryError {
    /// The policy tracks nothing.
    NotTracked(Box<str>),
    /// The policy does not track usage, by which the order ranks.
    NoUsage(Box<str>, Order),
    /// The limit is not in the range.
    Limit(usize),
    /// The prefix is longer than any tracked key.
    Prefix(usize),
    /// The cursor is malformed.
    Cursor(Box<str>),
    /// The cursor is of another process: the daemon was restarted, or it is another daemon.
    ForeignCursor,
    /// The cursor is too old.
    ExpiredCursor,
    /// The cursor belongs to another query.
    OtherQuery,
    /// The store failed.
    Unavailable(Failure),
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueryError::NotTracked(policy) => write!(
                f,
                "policy {policy:?} tracks nothing; add track: {{ usage: true }} to it and reload"
            ),
            QueryError::NoUsage(policy, order) => write!(
                f,
                "policy {policy:?} does not track usage, which the order {} needs; add usage: true \
                 to its track, or use newest or oldest",
                order.as_str()
            ),
            QueryError::Limit(limit) => {
                write!(f, "limit is {limit}; it must be from 1 to {MAX_PAGE}")
            }
            QueryError::Prefix(len) => write!(
                f,
                "the prefix has {len} bytes and can match no key; keys longer than {} bytes are not \
                 tracked",
                crate::MAX_KEY_BYTES
            ),
            QueryError::Cursor(cursor) => write!(
                f,
                "{cursor:?} is no cursor; send the one of the previous page, or none for the first"
            ),
            QueryError::ForeignCursor => f.write_str(
                "the cursor is from before a restart of the daemon, or of another daemon; begin again \
                 without a cursor",
            ),
            QueryError::ExpiredCursor => f.write_str(
                "the cursor has expired, because many pages were read since; begin again without a \
                 cursor",
            ),
            QueryError::OtherQuery => f.write_str(
                "the cursor belongs to a query with another policy, order or prefix; begin again \
                 without a cursor",
            ),
            QueryError::Unavailable(failure) => write!(f, "store unavailable: {failure}"),
        }
    }
}

impl std::error::Error for QueryError {}
