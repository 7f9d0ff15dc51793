//! What was admitted.

/// One admission, in microseconds of the store's clock or of the caller's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The number of the key.
    pub key: u32,
    /// How much later than `from` it happened at most.
    pub width: u32,
    /// When it happened at the earliest.
    pub from: u64,
    /// How long after `from` it acts, where the answer said.
    pub delay: u64,
    /// Until when its lease was held for certain; 0 if that is not known.
    pub released: u64,
}

impl Admission {
    /// One that happened at a time between `from` and `to`.
    #[must_use]
    pub fn between(key: u32, from: u64, to: u64) -> Self {
        let width = u32::try_from(to.saturating_sub(from)).unwrap_or(u32::MAX);
        Admission { key, width, from, delay: 0, released: 0 }
    }

    /// When it happened at the latest.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.from.saturating_add(u64::from(self.width))
    }

    /// When it acts.
    pub(super) fn acts(&self) -> u64 {
        self.from.saturating_add(self.delay)
    }
}

/// Whose clock admissions are told by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// The one that decides.
    Store,
    /// The caller's: a span by it is as long by the store's, but for one part in 1,000 and a
    /// millisecond.
    Caller,
}
