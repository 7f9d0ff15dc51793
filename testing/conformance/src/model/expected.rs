//! The expected decision of a store.

use std::fmt::Debug;

use tollgate_core::{Decision, Id, LimitDecision, Micros, Reason, Timestamp};

/// Every field of a [`Decision`] that a store decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Whether the request may go on.
    pub allowed: bool,
    /// The reason.
    pub reason: Reason,
    /// Whether waiting does not help.
    pub never: bool,
    /// The capacity of the binding limit.
    pub capacity: u64,
    /// The smallest remaining cost of the limits.
    pub remaining: u64,
    /// How long until the same cost would be admitted.
    pub retry_after: Option<Micros>,
    /// How long until nothing is used.
    pub reset_after: Option<Micros>,
    /// How long to wait before acting.
    pub delay: Micros,
    /// The cost that was charged or refunded.
    pub granted: u64,
    /// Whether anything changed.
    pub changed: bool,
    /// Whether this is an earlier answer.
    pub replayed: bool,
    /// Whether the policy only records.
    pub shadow: bool,
    /// The time of the decision.
    pub time: Timestamp,
    /// The lease it is about.
    pub lease: Option<Id>,
    /// The reservation it is about.
    pub reservation: Option<Id>,
    /// Which limit is binding.
    pub binding: usize,
    /// The decision of each limit.
    pub limits: Vec<LimitDecision>,
}

impl From<&Decision> for Expected {
    fn from(decision: &Decision) -> Self {
        Expected {
            allowed: decision.allowed,
            reason: decision.reason,
            never: decision.never,
            capacity: decision.capacity,
            remaining: decision.remaining,
            retry_after: decision.retry_after,
            reset_after: decision.reset_after,
            delay: decision.delay,
            granted: decision.granted,
            changed: decision.changed,
            replayed: decision.replayed,
            shadow: decision.shadow,
            time: decision.time,
            lease: decision.lease,
            reservation: decision.reservation,
            binding: decision.binding,
            limits: decision.limits(),
        }
    }
}

impl Expected {
    /// Names each field in which a store's answer differs, with both values.
    #[must_use]
    pub fn differences(&self, decision: &Decision) -> Vec<String> {
        self.differences_from(&Expected::from(decision))
    }

    /// Names each field in which another answer differs, with both values.
    #[must_use]
    pub fn differences_from(&self, other: &Expected) -> Vec<String> {
        let mut found = Differences::default();
        found.field("allowed", &self.allowed, &other.allowed);
        found.field("reason", &self.reason, &other.reason);
        found.field("never", &self.never, &other.never);
        found.field("capacity", &self.capacity, &other.capacity);
        found.field("remaining", &self.remaining, &other.remaining);
        found.field("retry_after", &self.retry_after, &other.retry_after);
        found.field("reset_after", &self.reset_after, &other.reset_after);
        found.field("delay", &self.delay, &other.delay);
        found.field("granted", &self.granted, &other.granted);
        found.field("changed", &self.changed, &other.changed);
        found.field("replayed", &self.replayed, &other.replayed);
        found.field("shadow", &self.shadow, &other.shadow);
        found.field("time", &self.time, &other.time);
        found.field("lease", &self.lease, &other.lease);
        found.field("reservation", &self.reservation, &other.reservation);
        found.field("binding", &self.binding, &other.binding);
        found.field("limits", &self.limits.len(), &other.limits.len());
        for (index, (expected, found_row)) in self.limits.iter().zip(&other.limits).enumerate() {
            found.row(index, expected, found_row);
        }
        found.0
    }
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn field<T: PartialEq + Debug>(&mut self, name: &str, expected: &T, found: &T) {
        if expected != found {
            self.0.push(format!("{name}: expected {expected:?}, found {found:?}"));
        }
    }

    fn row(&mut self, index: usize, expected: &LimitDecision, found: &LimitDecision) {
        let name = |field: &str| format!("limits[{index}].{field}");
        self.field(&name("allowed"), &expected.allowed, &found.allowed);
        self.field(&name("never"), &expected.never, &found.never);
        self.field(&name("binding"), &expected.binding, &found.binding);
        self.field(&name("capacity"), &expected.capacity, &found.capacity);
        self.field(&name("remaining"), &expected.remaining, &found.remaining);
        self.field(&name("retry_after"), &expected.retry_after, &found.retry_after);
        self.field(&name("reset_after"), &expected.reset_after, &found.reset_after);
    }
}
