//! Costs over time, in bins that widen as time advances.

use serde::Serialize;
use tollgate::{Micros, Timestamp};

use super::format::{DAY, HOUR, MILLISECOND, MINUTE, SECOND, WEEK};
use super::json;
use crate::convert::index;

/// The possible widths of bins: multiples of their unit, and each a multiple of the previous one.
/// 12,000 bins of 52 weeks reach from the epoch to the last timestamp.
const WIDTHS: [(u64, &[u64]); 6] = [
    (MILLISECOND, &[1, 5, 10, 50, 100, 500]),
    (SECOND, &[1, 5, 10, 30]),
    (MINUTE, &[1, 5, 10, 30]),
    (HOUR, &[1, 6]),
    (DAY, &[1]),
    (WEEK, &[1, 52]),
];

/// How many bins are kept: twice the columns of a wide picture.
const MAX_BINS: u64 = 2_000;

/// Costs over time in bins of equal width.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// The start of the first bin: a multiple of the width since the Unix epoch.
    #[serde(serialize_with = "json::seconds")]
    pub start: Timestamp,
    /// The width of a bin, which divides a second or is a multiple of it.
    #[serde(serialize_with = "json::seconds")]
    pub width: Micros,
    /// The cost in each bin.
    pub costs: Vec<u64>,
}

/// Costs over the same time: the offered cost, followed by the admitted cost of each candidate.
#[derive(Clone, Debug)]
pub(crate) struct Bins {
    columns: usize,
    /// Microseconds.
    width: u64,
    /// The number of the first bin since the epoch.
    first: u64,
    costs: Vec<u64>,
    /// The bin of the last call: its start, its end and its position. The next call is mostly for
    /// the same.
    last: (u64, u64, usize),
}

impl Bins {
    pub(crate) fn new(columns: usize) -> Self {
        Bins { columns, width: MILLISECOND, first: 0, costs: Vec::new(), last: (1, 0, 0) }
    }

    /// The costs of the bin at a time, to add to. Times are ascending.
    pub(crate) fn at(&mut self, at: u64) -> &mut [u64] {
        let (from, until, start) = self.last;
        let start = if (from..until).contains(&at) { start } else { self.find(at) };
        &mut self.costs[start..start + self.columns]
    }

    /// Makes room for a time; returns the position of its bin.
    fn find(&mut self, at: u64) -> usize {
        if self.costs.is_empty() {
            self.first = at / self.width;
        }
        while at / self.width - self.first >= MAX_BINS && self.widen() {}
        let bin = at / self.width;
        let start = index(bin - self.first) * self.columns;
        if self.costs.len() < start + self.columns {
            self.costs.resize(start + self.columns, 0);
        }
        self.last = (bin * self.width, (bin + 1).saturating_mul(self.width), start);
        start
    }

    /// Switches to the next width; returns whether there is one.
    fn widen(&mut self) -> bool {
        let mut widths =
            WIDTHS.iter().flat_map(|(unit, counts)| counts.iter().map(move |n| n * unit));
        let Some(width) = widths.find(|width| *width > self.width) else {
            return false;
        };
        let factor = width / self.width;
        let first = self.first / factor;
        let mut wider = Vec::new();
        for (bin, costs) in (self.first..).zip(self.costs.chunks_exact(self.columns)) {
            let start = index(bin / factor - first) * self.columns;
            wider.resize(start + self.columns, 0);
            for (sum, cost) in wider[start..].iter_mut().zip(costs) {
                *sum = u64::saturating_add(*sum, *cost);
            }
        }
        (self.width, self.first, self.costs) = (width, first, wider);
        self.last = (1, 0, 0);
        true
    }

    /// The sum of several bins, column by column.
    pub(crate) fn sum(parts: Vec<Bins>, columns: usize) -> Bins {
        let mut parts: Vec<_> = parts.into_iter().filter(|part| !part.costs.is_empty()).collect();
        parts.sort_by_key(|part| part.width);
        let Some(mut sum) = parts.pop() else { return Bins::new(columns) };
        for mut other in parts {
            while other.width < sum.width {
                other.widen();
            }
            sum = sum.plus(&other);
        }
        sum
    }

    /// The sum with other bins of the same width.
    fn plus(&self, other: &Bins) -> Bins {
        let first = self.first.min(other.first);
        let mut sum = Bins { first, costs: Vec::new(), last: (1, 0, 0), ..*self };
        for part in [self, other] {
            let start = index(part.first - first) * self.columns;
            let end = start + part.costs.len();
            if sum.costs.len() < end {
                sum.costs.resize(end, 0);
            }
            for (sum, cost) in sum.costs[start..end].iter_mut().zip(&part.costs) {
                *sum = sum.saturating_add(*cost);
            }
        }
        if sum.costs.len() > index(MAX_BINS) * sum.columns {
            sum.widen();
        }
        sum
    }

    pub(crate) fn column(&self, column: usize) -> Vec<u64> {
        self.costs.iter().skip(column).step_by(self.columns).copied().collect()
    }

    /// The first column with its times.
    pub(crate) fn timeline(&self) -> Timeline {
        if self.costs.is_empty() {
            return Timeline::default();
        }
        let start = Timestamp::from_micros(self.first * self.width);
        Timeline { start, width: Micros::new(self.width), costs: self.column(0) }
    }
}
