//! Counts of each key: its total, and its peaks in windows of the clock.

use std::collections::BTreeMap;

use tollgate::Micros;

use crate::report::{Amount, Peaks};

/// The windows of the peaks in seconds; each is a multiple of the previous one.
pub(crate) const WINDOWS: [u64; 4] = [1, 10, 60, 3_600];

/// The counts of one key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) requests: u64,
    pub(crate) cost: u64,
    /// The second of the last request.
    last: u64,
    /// The cost in the current window of each length.
    open: [u32; WINDOWS.len()],
    /// The highest cost in a window of each length.
    peaks: [u32; WINDOWS.len()],
    /// A bit for each candidate that denied the last request.
    pub(crate) denying: u32,
}

impl Tally {
    /// Counts a request. Times never go back.
    pub(crate) fn add(&mut self, at: u64, cost: u64) {
        let second = at / 1_000_000;
        self.requests += 1;
        self.cost = self.cost.saturating_add(cost);
        // Peaks saturate at 2^32 to keep a tally small.
        let small = u32::try_from(cost).unwrap_or(u32::MAX);
        if second == self.last {
            for (open, peak) in self.open.iter_mut().zip(&mut self.peaks) {
                *open = open.saturating_add(small);
                *peak = (*peak).max(*open);
            }
            return;
        }
        for ((window, open), peak) in WINDOWS.iter().zip(&mut self.open).zip(&mut self.peaks) {
            let is_open = second / window == self.last / window;
            *open = if is_open { open.saturating_add(small) } else { small };
            *peak = (*peak).max(*open);
        }
        self.last = second;
    }

    /// The total.
    pub(crate) fn amount(&self) -> Amount {
        Amount { requests: self.requests, cost: self.cost }
    }

    fn peaks(&self) -> [u32; WINDOWS.len()] {
        self.peaks
    }
}

/// The distribution of peaks over many keys.
#[derive(Debug, Default)]
pub(crate) struct Histograms {
    by_cost: [BTreeMap<u64, u64>; WINDOWS.len()],
    highest: [Option<(u64, Vec<u8>)>; WINDOWS.len()],
}

impl Histograms {
    /// Adds the peaks of a key.
    pub(crate) fn add(&mut self, tally: &Tally, key: &[u8]) {
        let rows = self.by_cost.iter_mut().zip(&mut self.highest).zip(tally.peaks());
        for ((by_cost, highest), peak) in rows {
            let peak = u64::from(peak);
            *by_cost.entry(rounded(peak)).or_default() += 1;
            if highest.as_ref().is_none_or(|(most, of)| (peak, &**of) > (*most, key)) {
                *highest = Some((peak, key.to_vec()));
            }
        }
    }

    /// Adds the peaks of other keys.
    pub(crate) fn add_all(&mut self, other: Histograms) {
        for (ours, theirs) in self.by_cost.iter_mut().zip(other.by_cost) {
            for (cost, keys) in theirs {
                *ours.entry(cost).or_default() += keys;
            }
        }
        for (ours, theirs) in self.highest.iter_mut().zip(other.highest) {
            // For equal peaks the first key by name, as within a partition.
            *ours = ours
                .take()
                .into_iter()
                .chain(theirs)
                .max_by(|one, other| one.0.cmp(&other.0).then_with(|| other.1.cmp(&one.1)));
        }
    }

    /// The peaks for a report.
    pub(crate) fn peaks(self) -> Vec<Peaks> {
        let rows = WINDOWS.iter().zip(self.by_cost).zip(self.highest);
        rows.map(|((window, by_cost), highest)| {
            // The last bucket is rounded up too, but no peak exceeds the highest.
            let most = highest.as_ref().map_or(u64::MAX, |highest| highest.0);
            let keys_by_cost = by_cost.into_iter().map(|(cost, keys)| (cost.min(most), keys));
            let keys_by_cost = keys_by_cost.collect();
            Peaks { window: Micros::from_secs(*window), keys_by_cost, highest }
        })
        .collect()
    }
}

/// Rounds a cost above 1,024 up to a 64th of the power of two below it.
fn rounded(cost: u64) -> u64 {
    if cost <= 1_024 {
        return cost;
    }
    let step = 1 << (cost.ilog2() - 6);
    cost.div_ceil(step) * step
}
