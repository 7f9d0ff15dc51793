//! What is held at one time.

use super::admission::Admission;
use super::verdict::Excess;

/// No more is held at one time than `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overlap {
    most: u64,
    holds: Holds,
}

/// Until when a place is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    /// Until its release, at most so long.
    Lease(u64),
    /// Until it leaves the queue, but for so much.
    Wait(u64),
}

impl Overlap {
    pub(super) fn held(most: u64, lease: u64) -> Self {
        Overlap { most, holds: Holds::Lease(lease) }
    }

    pub(super) fn waiting(most: u64, tick: u64) -> Self {
        Overlap { most, holds: Holds::Wait(tick) }
    }

    /// From the instant after which it is held to the last at which it is.
    fn span(&self, it: &Admission) -> Option<(u64, u64)> {
        let end = match self.holds {
            Holds::Lease(length) => it.released.min(it.from.saturating_add(length)),
            Holds::Wait(tick) => it.acts().saturating_sub(tick),
        };
        (end > it.to()).then_some((it.to(), end))
    }

    /// The most that is held at once, if it is too much. Places that are taken and given back in the
    /// same microsecond may have been in either order, so what ends goes first.
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
        let mut most = u128::from(self.most);
        for start in starts {
            while ends.next_if(|end| *end <= start).is_some() {
                held -= u128::from(cost);
            }
            held += u128::from(cost);
            if held > most {
                most = held;
                let bound = u128::from(self.most);
                worst = Some(Excess { from: start, to: start, admitted: held, bound });
            }
        }
        worst
    }
}
