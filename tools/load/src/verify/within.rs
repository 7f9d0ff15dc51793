//! What any short span holds at most.

use super::admission::{Admission, Times};
use super::bound::Grid;
use super::verdict::Excess;

/// Any two admissions less than `span` units apart, and all between them, are at most `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Within {
    pub(super) grid: Grid,
    pub(super) span: u64,
    pub(super) most: u128,
}

impl Within {
    /// The same for spans that are told by this clock; none if it cannot tell so short a one.
    pub(super) fn told_by(self, times: Times) -> Option<Self> {
        let span = match times {
            Times::Store => self.span,
            Times::Caller => self.span.saturating_sub(1_000) / 1_001 * 1_000,
        };
        (span > 0).then_some(Within { span, ..self })
    }

    /// What admissions do against it at most. As ends come in order, so do the earliest beginnings
    /// that are near enough: each admission comes in once and leaves once.
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
                // One that has not come in by now begins too early ever to do so.
                inside -= u128::from(left < index);
            }
            inside += u128::from(start_of(admission) >= earliest);
            let admitted = inside * u128::from(cost);
            if admitted > worst.as_ref().map_or(self.most, |worst| worst.admitted) {
                let (from, after) = (self.grid.start(earliest), self.grid.start(end + 1));
                worst = Some(Excess { from, to: after - 1, admitted, bound: self.most });
            }
        }
        worst
    }
}
