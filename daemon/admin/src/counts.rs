//! Decisions of a policy, or of all.

use serde::Serialize;
use tollgate::Micros;
use tollgate_engine::PolicyCounts;

use crate::number::Decimal;

/// Decisions by result. Those without the store, which are degraded, are also allowed or denied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts<T = u64> {
    pub(crate) allowed: T,
    pub(crate) denied: T,
    pub(crate) shadow_denied: T,
    pub(crate) degraded: T,
    pub(crate) errors: T,
}

impl From<&PolicyCounts> for Counts {
    fn from(policy: &PolicyCounts) -> Self {
        let surfaces = policy.surfaces.iter().map(|(_, answers)| Counts::from_answers(answers));
        let degraded = policy.degraded.iter().map(|(_, count)| count).sum();
        let all = surfaces.fold(Counts::default(), Counts::plus);
        Counts { degraded, ..all }
    }
}

impl Counts {
    /// The decisions of one surface. How many were degraded is counted per policy only.
    pub(crate) fn from_answers(answers: &[(&str, u64)]) -> Self {
        let sum = |names: &[&str]| {
            let matching = answers.iter().filter(|(name, _)| names.contains(name));
            matching.map(|(_, count)| count).sum()
        };
        Counts {
            allowed: sum(&["allowed"]),
            denied: sum(&["denied", "never", "banned"]),
            shadow_denied: sum(&["shadow_denied"]),
            degraded: 0,
            errors: sum(&["error"]),
        }
    }
}

impl<T: Copy> Counts<T> {
    /// Combines each number with its counterpart.
    pub(crate) fn zip<U: Copy, V>(self, other: Counts<U>, f: impl Fn(T, U) -> V) -> Counts<V> {
        Counts {
            allowed: f(self.allowed, other.allowed),
            denied: f(self.denied, other.denied),
            shadow_denied: f(self.shadow_denied, other.shadow_denied),
            degraded: f(self.degraded, other.degraded),
            errors: f(self.errors, other.errors),
        }
    }

    /// Converts each number.
    pub(crate) fn map<V>(self, f: impl Fn(T) -> V) -> Counts<V> {
        self.zip(self, |number, _| f(number))
    }
}

impl Counts {
    /// The sum of both.
    pub(crate) fn plus(self, other: Counts) -> Counts {
        self.zip(other, u64::saturating_add)
    }

    /// What was added since an earlier time.
    pub(crate) fn since(self, before: Counts) -> Counts {
        self.zip(before, u64::saturating_sub)
    }

    /// The decisions per second.
    pub(crate) fn rates(self, time: Micros) -> Counts<Decimal> {
        self.map(|count| Decimal::rate(count, time))
    }
}
