//! Costs over time, in bins that widen as the time grows.

use tollgate::{Micros, Timestamp};

/// The widths that bins may have, in microseconds; each is a multiple of the one before.
const WIDTHS: [u64; 19] = [
    1_000,
    5_000,
    10_000,
    50_000,
    100_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
    600_000_000,
    1_800_000_000,
    3_600_000_000,
    21_600_000_000,
    86_400_000_000,
    604_800_000_000,
    // Fifty-two weeks: from the epoch to the end of what a time stamp can say are 12,000 of them.
    31_449_600_000_000,
];

/// The most bins. Twice as many as a wide picture has columns.
const MAX_BINS: u64 = 2_000;

/// Costs over time, in bins of one width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When the first bin begins: a multiple of the width since the Unix epoch.
    pub start: Timestamp,
    /// How long a bin is; a second is a multiple of it, or it of a second.
    pub width: Micros,
    /// The cost in each bin.
    pub costs: Vec<u64>,
}

/// Several costs over the same time, as they come in: first what was offered, then what each
/// alternative admitted.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    /// How many costs a bin has.
    columns: usize,
    /// Which of the widths holds.
    width: usize,
    /// The number of the first bin since the epoch.
    first: u64,
    /// The costs, bin by bin.
    costs: Vec<u64>,
    /// What the last call found, which the next mostly is of too: from when to when, and where.
    last: (u64, u64, usize),
}

impl Bins {
    /// Nothing yet.
    pub(crate) fn new(columns: usize) -> Self {
        Bins { columns, width: 0, first: 0, costs: Vec::new(), last: (1, 0, 0) }
    }

    /// The costs of the bin of a moment, to add to. Moments never go back.
    pub(crate) fn at(&mut self, at: u64) -> &mut [u64] {
        let (from, until, start) = self.last;
        let start = if (from..until).contains(&at) { start } else { self.find(at) };
        self.costs.get_mut(start..start + self.columns).unwrap_or_default()
    }

    /// Makes room for a moment, and says where the costs of its bin begin.
    fn find(&mut self, at: u64) -> usize {
        if self.costs.is_empty() {
            self.first = at / self.micros();
        }
        while at / self.micros() - self.first >= MAX_BINS && self.width + 1 < WIDTHS.len() {
            self.widen();
        }
        let bin = at / self.micros();
        let start = usize::try_from(bin - self.first).unwrap_or(usize::MAX) * self.columns;
        if self.costs.len() < start + self.columns {
            self.costs.resize(start + self.columns, 0);
        }
        self.last = (bin * self.micros(), (bin + 1).saturating_mul(self.micros()), start);
        start
    }

    fn micros(&self) -> u64 {
        WIDTHS[self.width]
    }

    /// Goes on with the next width.
    fn widen(&mut self) {
        let before = self.micros();
        self.width += 1;
        let factor = self.micros() / before;
        let first = self.first / factor;
        let mut wider = Vec::new();
        for (bin, costs) in (self.first..).zip(self.costs.chunks_exact(self.columns)) {
            let start = usize::try_from(bin / factor - first).unwrap_or(usize::MAX) * self.columns;
            wider.resize(start + self.columns, 0);
            for (sum, cost) in wider[start..].iter_mut().zip(costs) {
                *sum = u64::saturating_add(*sum, *cost);
            }
        }
        (self.first, self.costs) = (first, wider);
        self.last = (1, 0, 0);
    }

    /// The sum of several, column by column.
    pub(crate) fn sum(several: Vec<Bins>, columns: usize) -> Bins {
        let mut several: Vec<_> =
            several.into_iter().filter(|several| !several.costs.is_empty()).collect();
        several.sort_by_key(|several| several.width);
        let Some(mut sum) = several.pop() else { return Bins::new(columns) };
        for mut other in several {
            while other.width < sum.width {
                other.widen();
            }
            sum = sum.plus(&other);
        }
        sum
    }

    /// The sum with another of the same width.
    fn plus(&self, other: &Bins) -> Bins {
        let first = self.first.min(other.first);
        let mut sum = Bins { first, costs: Vec::new(), last: (1, 0, 0), ..*self };
        for part in [self, other] {
            let start = usize::try_from(part.first - first).unwrap_or(usize::MAX) * self.columns;
            let end = start + part.costs.len();
            if sum.costs.len() < end {
                sum.costs.resize(end, 0);
            }
            for (sum, cost) in sum.costs[start..end].iter_mut().zip(&part.costs) {
                *sum = sum.saturating_add(*cost);
            }
        }
        if sum.costs.len() > usize::try_from(MAX_BINS).unwrap_or(usize::MAX) * sum.columns
            && sum.width + 1 < WIDTHS.len()
        {
            sum.widen();
        }
        sum
    }

    /// One column of it.
    pub(crate) fn column(&self, column: usize) -> Vec<u64> {
        self.costs.iter().skip(column).step_by(self.columns).copied().collect()
    }

    /// The first column, with its times.
    pub(crate) fn timeline(&self) -> Timeline {
        if self.costs.is_empty() {
            return Timeline::default();
        }
        let start = Timestamp::from_micros(self.first * self.micros());
        Timeline { start, width: Micros::new(self.micros()), costs: self.column(0) }
    }
}
