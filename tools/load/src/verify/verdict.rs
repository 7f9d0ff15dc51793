//! All keys and all limits together.

use std::cmp::Reverse;

use tollgate::Limit;

use super::admission::{Admission, Times};
use super::bound::{Bound, bounds_of_all};

/// What is over a bound, in whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) admitted: u128,
    pub(super) bound: u128,
}

/// More than a limit's bound was certainly admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The number of the key.
    pub key: u32,
    /// The limit.
    pub limit: Limit,
    /// The first microsecond of the span.
    pub from: u64,
    /// The last microsecond of the span.
    pub to: u64,
    /// What was admitted in it; of a weighted window with what the one before counts.
    pub admitted: u128,
    /// The most that could be.
    pub bound: u128,
}

impl Violation {
    fn over(&self) -> u128 {
        self.admitted.saturating_sub(self.bound)
    }
}

/// What came of holding admissions against limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// How many admissions were held against the bounds.
    pub admissions: usize,
    /// How many pairs of a key and a limit broke a bound.
    pub violations: usize,
    /// The worst of them, the worst first.
    pub worst: Vec<Violation>,
}

/// How many violations are told.
const TOLD: usize = 10;

/// Holds admissions of one cost against limits.
#[derive(Clone, Debug)]
pub struct Verifier {
    limits: Vec<(Limit, Vec<Bound>)>,
    cost: u64,
}

impl Verifier {
    /// One for admissions of this cost under all these limits, told by this clock.
    #[must_use]
    pub fn new(limits: &[Limit], cost: u64, times: Times) -> Self {
        Verifier { limits: bounds_of_all(limits, times), cost }
    }

    /// The limits that no bound is known of by this clock: leases by the caller's.
    pub fn unheld(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().filter(|limit| limit.1.is_empty()).map(|limit| &limit.0)
    }

    /// Holds the admissions of all keys against all limits. O(n log n) for each limit; beside the
    /// admissions themselves, 32 bytes each, it takes at most 140 bytes for each of the key that has
    /// most of them.
    #[must_use]
    pub fn verify(&self, admissions: &mut [Admission]) -> Verdict {
        admissions
            .sort_unstable_by_key(|admission| (admission.key, admission.to(), admission.from));
        let mut verdict = Verdict { admissions: admissions.len(), ..Verdict::default() };
        for of_key in admissions.chunk_by(|one, other| one.key == other.key) {
            for (limit, bounds) in &self.limits {
                if let Some(violation) = self.worst(limit, bounds, of_key) {
                    verdict.violations += 1;
                    verdict.worst.push(violation);
                }
            }
            verdict.worst.sort_by_key(|worst| Reverse(worst.over()));
            verdict.worst.truncate(TOLD);
        }
        verdict
    }

    fn worst(&self, limit: &Limit, bounds: &[Bound], of_key: &[Admission]) -> Option<Violation> {
        let key = of_key.first()?.key;
        let found = bounds.iter().filter_map(|bound| bound.worst(self.cost, of_key));
        let violations = found.map(|found| {
            let Excess { from, to, admitted, bound } = found;
            Violation { key, limit: *limit, from, to, admitted, bound }
        });
        violations.max_by_key(Violation::over)
    }
}
