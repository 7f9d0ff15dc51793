//! The bounds of each kind of limit; [`super`] derives them.

use tollgate::{Kind, Limit};

use super::admission::{Admission, Excess, Grid, TimeSource};
use super::linear::Linear;
use super::overlap::{Hold, Overlap};
use super::spans::{Spaced, Weighted, Within};

/// A bound on all admissions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Linear(Linear),
    Within(Within),
    Weighted(Weighted),
    Spaced(Spaced),
    Overlap(Overlap),
}

impl Bound {
    /// The largest excess of the admissions of one key, which are sorted by `to`.
    pub(super) fn worst(&self, cost: u64, admissions: &[Admission]) -> Option<Excess> {
        match self {
            Bound::Linear(linear) => linear.worst(cost, admissions),
            Bound::Within(within) => within.worst(cost, admissions),
            Bound::Weighted(weighted) => weighted.worst(cost, admissions),
            Bound::Spaced(spaced) => spaced.worst(cost, admissions),
            Bound::Overlap(overlap) => overlap.worst(cost, admissions),
        }
    }
}

const WEEK: u64 = 7 * 86_400 * 1_000_000;
/// The first Monday after the epoch, which is a Thursday.
const MONDAY: u64 = 4 * 86_400 * 1_000_000;

/// The bounds of every limit of a policy.
pub(super) fn all_bounds(limits: &[Limit], source: TimeSource) -> Vec<(Limit, Vec<Bound>)> {
    // With several queues, a reply contains only the longest delay.
    let queues = limits.iter().filter(|limit| matches!(limit.spec().kind, Kind::Queue { .. }));
    let has_delay = source == TimeSource::Store && queues.count() == 1;
    limits.iter().map(|limit| (*limit, bounds(limit, source, has_delay))).collect()
}

fn bounds(limit: &Limit, source: TimeSource, has_delay: bool) -> Vec<Bound> {
    let spec = limit.spec();
    let (count, window, tick) = (spec.count, spec.window.get(), limit.tick().get());
    let buckets = |unit, shift, number| {
        let is_aligned = source == TimeSource::Store;
        Buckets { max: count, unit, shift, number }.bounds(is_aligned, source)
    };
    match spec.kind {
        Kind::TokenBucket { .. } => vec![token_bucket(limit, source)],
        Kind::Queue { places } if has_delay => vec![
            token_bucket(limit, source),
            Bound::Spaced(Spaced { count, window, tick }),
            Bound::Overlap(Overlap { max: places.saturating_add(1), hold: Hold::Queue(tick) }),
        ],
        Kind::Queue { .. } => vec![token_bucket(limit, source)],
        Kind::Fixed { offset } => {
            let monday = if window.is_multiple_of(WEEK) { MONDAY } else { 0 };
            let origin = (monday + offset.get()) % window;
            buckets(window, window - origin, 1)
        }
        Kind::FixedFromFirst => {
            Buckets { max: count, unit: window, shift: 0, number: 1 }.bounds(false, source)
        }
        Kind::Log => buckets(1, 0, window),
        Kind::SlidingBy { precision, strict } => {
            let precision = precision.get();
            buckets(precision, 0, window / precision + u64::from(strict))
        }
        Kind::Sliding => weighted(count, window, tick, source),
        Kind::Concurrent if source == TimeSource::Store => {
            vec![Bound::Overlap(Overlap { max: count, hold: Hold::Lease(window) })]
        }
        _ => Vec::new(),
    }
}

fn token_bucket(limit: &Limit, source: TimeSource) -> Bound {
    let spec = limit.spec();
    let (count, window) = (i128::from(spec.count), i128::from(spec.window.get()));
    let (capacity, tick) = (i128::from(limit.capacity()), i128::from(limit.tick().get()));
    let full = capacity * window;
    let linear = match source {
        TimeSource::Store => Linear {
            grid: Grid { unit: limit.tick().get(), shift: 0 },
            base: full,
            rate: count * tick,
            per: window,
        },
        TimeSource::Client => {
            Linear { grid: Grid::MICROS, base: full + count * (tick - 1), rate: count, per: window }
        }
    };
    Bound::Linear(linear.dated_by(source))
}

fn weighted(count: u64, window: u64, tick: u64, source: TimeSource) -> Vec<Bound> {
    let (max, length) = (i128::from(count), i128::from(window));
    // ⌈x/W⌉ is at most (x + W − 1)/W, and a span of length 0 admits L.
    let base = max * length + (length - 1 - max).max(0);
    let linear = Linear { grid: Grid::MICROS, base, rate: max, per: length };
    let mut bounds = vec![Bound::Linear(linear.dated_by(source))];
    if source == TimeSource::Store {
        bounds.push(Bound::Weighted(Weighted { max: count, window, tick }));
    }
    bounds
}

/// Windows made of buckets, any `number` consecutive ones of which admit at most `max`.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    max: u64,
    unit: u64,
    shift: u64,
    number: u64,
}

impl Buckets {
    fn bounds(self, is_aligned: bool, source: TimeSource) -> Vec<Bound> {
        let Buckets { max, unit, shift, number } = self;
        let (count, length, n) = (i128::from(max), i128::from(unit), i128::from(number));
        if is_aligned {
            let grid = Grid { unit, shift };
            let linear = Linear { grid, base: count * n, rate: count, per: n };
            return vec![
                Bound::Within(Within { grid, span: number, max: u128::from(max) }),
                Bound::Linear(linear),
            ];
        }
        let per = n * length;
        let base = count * per + count * (length - 1);
        let linear = Linear { grid: Grid::MICROS, base, rate: count, per };
        let spans = (1..=2).map(|factor: u64| {
            let span = (factor * number - 1).saturating_mul(unit).saturating_add(1);
            Within { grid: Grid::MICROS, span, max: u128::from(max) * u128::from(factor) }
        });
        let spans = spans.filter_map(|span| span.dated_by(source)).map(Bound::Within);
        spans.chain([Bound::Linear(linear.dated_by(source))]).collect()
    }
}
