//! Verifies the admissions of all keys against all limits.

use std::cmp::Reverse;

use tollgate::Limit;

use super::admission::{Admission, Excess, TimeSource};
use super::bound::{Bound, all_bounds};

/// A span in which certainly more was admitted than the limit allows.
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
    /// The admitted cost; for a sliding window counter, including the weighted previous window.
    pub admitted: u128,
    /// The highest cost that the limit allows.
    pub bound: u128,
}

impl Violation {
    fn excess(&self) -> u128 {
        self.admitted.saturating_sub(self.bound)
    }
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The number of verified admissions.
    pub admissions: usize,
    /// The number of pairs of a key and a limit with a violation.
    pub violations: usize,
    /// The largest violations, largest first.
    pub worst: Vec<Violation>,
}

/// How many violations are reported.
const MAX_REPORTED: usize = 10;

/// Verifies admissions of equal cost against limits.
#[derive(Clone, Debug)]
pub struct Verifier {
    limits: Vec<(Limit, Vec<Bound>)>,
    cost: u64,
}

impl Verifier {
    /// A verifier for admissions of this cost, dated by this clock.
    #[must_use]
    pub fn new(limits: &[Limit], cost: u64, source: TimeSource) -> Self {
        Verifier { limits: all_bounds(limits, source), cost }
    }

    /// The limits without a bound by this clock: concurrent limits by the client's.
    pub fn unverifiable(&self) -> impl Iterator<Item = &Limit> {
        self.limits.iter().filter(|(_, bounds)| bounds.is_empty()).map(|(limit, _)| limit)
    }

    /// Verifies the admissions of all keys against all limits. Takes O(n log n) for each limit, and
    /// besides the admissions (32 bytes each) at most 140 bytes per admission of the busiest key.
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
            verdict.worst.sort_by_key(|worst| Reverse(worst.excess()));
            verdict.worst.truncate(MAX_REPORTED);
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
        violations.max_by_key(Violation::excess)
    }
}
