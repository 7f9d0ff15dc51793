//! What is recorded about a key.

use smallvec::SmallVec;
use tollgate::{Decision, Micros, Reason, Timestamp};

/// The largest total: larger ones saturate. Scripts on Redis compute with doubles, which are exact up
/// to here.
pub const MAX_TOTAL: u64 = (1 << 53) - 1;
/// The longest key that is tracked, in bytes.
pub const MAX_KEY_BYTES: usize = 256;
/// The longest note of a request, in bytes.
pub const MAX_NOTE_BYTES: usize = 256;

/// A key. One of at most 24 bytes needs no allocation.
pub(crate) type InlineKey = SmallVec<[u8; 24]>;

/// The size of what a key has allocated.
pub(crate) fn allocated_bytes(key: &InlineKey) -> usize {
    if key.spilled() { key.capacity() } else { 0 }
}

/// The category of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteAnswer {
    /// Admitted.
    Allowed,
    /// Denied.
    Denied,
    /// Denied, because the cost exceeds the capacity.
    Never,
    /// Denied, because the policy bans the key.
    Banned,
    /// Admitted, although the limits deny.
    ShadowDenied,
}

impl NoteAnswer {
    /// Every category.
    pub const ALL: [NoteAnswer; 5] = [
        NoteAnswer::Allowed,
        NoteAnswer::Denied,
        NoteAnswer::Never,
        NoteAnswer::Banned,
        NoteAnswer::ShadowDenied,
    ];

    /// The category of a decision. `is_shadow` is true if the client is admitted in any case.
    #[inline]
    #[must_use]
    pub fn new(decision: &Decision, is_shadow: bool) -> Self {
        if decision.is_shadow_denial() || is_shadow && !decision.allowed {
            NoteAnswer::ShadowDenied
        } else if decision.allowed {
            NoteAnswer::Allowed
        } else if decision.reason == Reason::Banned {
            NoteAnswer::Banned
        } else if decision.never {
            NoteAnswer::Never
        } else {
            NoteAnswer::Denied
        }
    }

    /// Its name, which metrics also use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            NoteAnswer::Allowed => "allowed",
            NoteAnswer::Denied => "denied",
            NoteAnswer::Never => "never",
            NoteAnswer::Banned => "banned",
            NoteAnswer::ShadowDenied => "shadow_denied",
        }
    }

    /// Its number, below 8.
    #[inline]
    pub(crate) const fn number(self) -> u8 {
        match self {
            NoteAnswer::Allowed => 0,
            NoteAnswer::Denied => 1,
            NoteAnswer::Never => 2,
            NoteAnswer::Banned => 3,
            NoteAnswer::ShadowDenied => 4,
        }
    }

    /// The category of this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        NoteAnswer::ALL.into_iter().find(|answer| answer.number() == number)
    }

    /// Whether the limits admit the request.
    pub(crate) fn is_allowed(self) -> bool {
        self == NoteAnswer::Allowed
    }
}

/// One decision about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// When it was made, on the store's clock.
    pub time: Timestamp,
    /// The requested cost.
    pub cost: u64,
    /// The answer.
    pub answer: NoteAnswer,
    /// The note of the request.
    pub text: Option<Box<str>>,
}

/// The totals of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// The time of the first decision.
    pub first_seen: Timestamp,
    /// The time of the last decision.
    pub last_seen: Timestamp,
    /// The requests that the limits admitted.
    pub allowed: u64,
    /// The requests that the limits denied, also those that a shadow policy admitted.
    pub denied: u64,
    /// The cost that was charged.
    pub cost: u64,
}

/// A key and its totals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyUsage {
    /// The key. Format it as `privacy` permits before it is shown.
    pub key: Box<[u8]>,
    /// Its totals.
    pub usage: Usage,
}

/// Everything that is recorded about a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// Its totals, if the policy tracks usage.
    pub usage: Option<Usage>,
    /// The last decisions, the newest first.
    pub recent: Vec<Note>,
    /// Its timeline, if the policy tracks one.
    pub timeline: Option<Timeline>,
}

/// The time series of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The length of an interval.
    pub interval: Micros,
    /// The intervals with decisions, by ascending time.
    pub intervals: Vec<Interval>,
}

/// The decisions of an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The beginning of the interval, a multiple of its length since the Unix epoch.
    pub start: Timestamp,
    /// The requests that the limits admitted.
    pub allowed: u64,
    /// The requests that the limits denied.
    pub denied: u64,
    /// The cost that was charged.
    pub cost: u64,
}

impl Interval {
    /// Adds the decisions of another interval.
    pub(crate) fn add(&mut self, other: Interval) {
        add(&mut self.allowed, other.allowed);
        add(&mut self.denied, other.denied);
        add(&mut self.cost, other.cost);
    }
}

/// Adds to a total, which saturates.
#[inline]
pub(crate) fn add(total: &mut u64, more: u64) {
    *total = total.saturating_add(more).min(MAX_TOTAL);
}
