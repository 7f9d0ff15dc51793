//! A constant bound on every span up to a length.

use super::admission::{Admission, TimeSource};
use super::grid::{Excess, Grid};

/// Two admissions less than `span` units apart, and all between them, cost at most `max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within {
    pub(super) grid: Grid,
    pub(super) span: u64,
    pub(super) max: u128,
}

impl Within {
    /// The same bound for spans dated by this clock; `None` if the span is too short for it.
    pub(super) fn dated_by(self, source: TimeSource) -> Option<Self> {
        let span = match source {
            TimeSource::Store => self.span,
            TimeSource::Client => self.span.saturating_sub(1_000) / 1_001 * 1_000,
        };
        (span > 0).then_some(Within { span, ..self })
    }

    /// The largest excess. The ends are in order, and so are the earliest starts within the span: each
    /// admission enters once and leaves once.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        let start_of = |admission: &Admission| self.grid.number(admission.from);
        let mut leaving: Vec<(u64, usize)> = admissions
            .iter()
            .enumerate()
            .map(|(index, admission)| (start_of(admission), index))
            .collect();
        leaving.sort_unstable();
        let mut leaving = leaving.into_iter().peekable();
        let mut inside = 0_u128;
        let mut worst: Option<Excess> = None;
        for (index, admission) in admissions.iter().enumerate() {
            let end = self.grid.number(admission.to());
            let earliest = end.saturating_add(1).saturating_sub(self.span);
            while let Some((_, left)) = leaving.next_if(|leaving| leaving.0 < earliest) {
                // An admission that has not entered by now starts too early to enter later.
                inside -= u128::from(left < index);
            }
            inside += u128::from(start_of(admission) >= earliest);
            let admitted = inside * u128::from(cost);
            if admitted > worst.as_ref().map_or(self.max, |worst| worst.admitted) {
                let (from, after) = (self.grid.start(earliest), self.grid.start(end + 1));
                worst = Some(Excess { from, to: after - 1, admitted, bound: self.max });
            }
        }
        worst
    }
}
