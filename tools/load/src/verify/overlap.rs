//! A bound on what is held at the same time.

use super::admission::{Admission, Excess};

/// At most `max` is held at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    pub(super) max: u64,
    pub(super) hold: Hold,
}

/// How long a slot is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Until the lease is released, at most for this long.
    Lease(u64),
    /// Until this long before the request leaves the queue.
    Queue(u64),
}

impl Overlap {
    /// The time after which the slot is certainly held, and the last time at which it is.
    fn span(&self, admission: &Admission) -> Option<(u64, u64)> {
        let end = match self.hold {
            Hold::Lease(length) => admission.released.min(admission.from.saturating_add(length)),
            Hold::Queue(tick) => admission.departure().saturating_sub(tick),
        };
        (end > admission.to()).then_some((admission.to(), end))
    }

    /// The largest excess. A slot that is released in the microsecond in which another is taken may
    /// have been released first, so ends come before starts.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let mut ends: Vec<u64> = Vec::with_capacity(admissions.len());
        let mut starts: Vec<u64> = Vec::with_capacity(admissions.len());
        for (start, end) in admissions.iter().filter_map(|admission| self.span(admission)) {
            starts.push(start);
            ends.push(end);
        }
        starts.sort_unstable();
        ends.sort_unstable();
        let mut ends = ends.into_iter().peekable();
        let (mut held, mut worst) = (0_u128, None);
        let mut highest = u128::from(self.max);
        for start in starts {
            while ends.next_if(|end| *end <= start).is_some() {
                held -= u128::from(cost);
            }
            held += u128::from(cost);
            if held > highest {
                highest = held;
                let bound = u128::from(self.max);
                worst = Some(Excess { from: start, to: start, admitted: held, bound });
            }
        }
        worst
    }
}
