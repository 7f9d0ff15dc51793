//! How much a trace admits relative to the limits.

use std::fmt;

use crate::traffic::{Event, LoadPolicy, POLICIES};

/// The limit of every policy with a bound.
pub(crate) const LIMIT: u64 = 20;
const WINDOW: u64 = 10_000_000;
const BUCKET: u64 = 1_000_000;
const DAY: u64 = 86_400_000_000;
/// The greatest difference between the clocks of the daemons and of the servers of one machine, in µs.
const CLOCK_ERROR: u64 = 20_000;

/// What a policy promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unbounded,
    /// The limit in the whole run, unless midnight is in it.
    Whole,
    AlignedWindow,
    Window,
    Buckets,
    TokenBucket,
    /// The limit at every instant.
    Leases,
}

/// The most that was admitted in a window, as a multiple of the limit, and the policy.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Admitted {
    pub(crate) worst: f64,
    pub(crate) policy: &'static str,
}

impl fmt::Display for Admitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} of the limit of `{}`", self.worst, self.policy)
    }
}

/// Returns the most that these events have admitted, over all policies, keys and windows.
pub(crate) fn worst(events: &[Event], include: impl Fn(&Event) -> bool) -> Admitted {
    let mut result = Admitted::default();
    for (policy, LoadPolicy { name, kind, .. }) in POLICIES.iter().enumerate() {
        let keys = events.iter().map(|event| event.key).max().unwrap_or_default();
        for key in 0..=keys {
            let is_included = |event: &&Event| {
                (event.policy, event.key, event.is_admitted) == (policy, key, true)
                    && include(event)
            };
            let admitted: Vec<_> = events.iter().filter(is_included).collect();
            let worst = match kind {
                Kind::Unbounded => 0.0,
                Kind::Leases => leases(&admitted),
                _ => intervals(*kind, &admitted),
            };
            if worst > result.worst {
                result = Admitted { worst, policy: name };
            }
        }
    }
    result
}

fn intervals(kind: Kind, events: &[&Event]) -> f64 {
    let mut worst = 0.0_f64;
    for (start, first) in events.iter().enumerate() {
        for (count, event) in (1_u64..).zip(&events[start..]) {
            let span = event.at - first.at;
            let window = |time: u64| time / WINDOW;
            let limit = LIMIT as f64;
            let bound = match kind {
                Kind::Whole if event.at / DAY == first.at / DAY => limit,
                Kind::AlignedWindow if window(event.at) == window(first.at) => limit,
                Kind::Window if span + CLOCK_ERROR < WINDOW => limit,
                Kind::Buckets if span + BUCKET + CLOCK_ERROR < WINDOW => limit,
                // The capacity, and what is refilled meanwhile.
                Kind::TokenBucket => {
                    limit + limit * (span + CLOCK_ERROR) as f64 / WINDOW as f64 + 1.0
                }
                _ => break,
            };
            worst = worst.max(count as f64 / bound);
        }
    }
    worst
}

/// The most leases in use at the same time. A client knows a lease for a shorter time than the store.
fn leases(events: &[&Event]) -> f64 {
    let in_use = |time: u64| {
        events.iter().filter(|event| event.received <= time && time < event.used_until).count()
    };
    let most = events.iter().map(|event| in_use(event.received)).max().unwrap_or_default();
    most as f64 / LIMIT as f64
}
