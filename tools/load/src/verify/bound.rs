//! The bounds of a limit; the module above derives them.

use tollgate::{Kind, Limit};

use super::admission::{Admission, Times};
use super::linear::Linear;
use super::overlap::Overlap;
use super::spaced::Spaced;
use super::verdict::Excess;
use super::weighted::Weighted;
use super::within::Within;

/// Something that all admissions of a key must keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bound {
    Linear(Linear),
    Within(Within),
    Weighted(Weighted),
    Spaced(Spaced),
    Overlap(Overlap),
}

impl Bound {
    /// The worst that the admissions of one key, in order of `to`, do against it.
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

/// What times are floored to: whole units since `shift` before the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) unit: u64,
    pub(super) shift: u64,
}

impl Grid {
    pub(super) const MICROS: Grid = Grid { unit: 1, shift: 0 };

    pub(super) fn number(self, time: u64) -> u64 {
        time.saturating_add(self.shift) / self.unit
    }

    /// When the unit of this number begins.
    pub(super) fn start(self, number: u64) -> u64 {
        number.saturating_mul(self.unit).saturating_sub(self.shift)
    }
}

const WEEK: u64 = 7 * 86_400 * 1_000_000;
/// The first Monday after the epoch, which was a Thursday.
const MONDAY: u64 = 4 * 86_400 * 1_000_000;

/// All bounds of each of a policy's limits.
pub(super) fn bounds_of_all(limits: &[Limit], times: Times) -> Vec<(Limit, Vec<Bound>)> {
    // Of several queues an answer tells the longest delay only.
    let queues = limits.iter().filter(|limit| matches!(limit.spec().kind, Kind::Queue { .. }));
    let tells_delay = times == Times::Store && queues.count() == 1;
    limits.iter().map(|limit| (*limit, bounds_of(limit, times, tells_delay))).collect()
}

fn bounds_of(limit: &Limit, times: Times, tells_delay: bool) -> Vec<Bound> {
    let spec = limit.spec();
    let (count, window, tick) = (spec.count, spec.window.get(), limit.tick().get());
    let buckets = |unit, shift, number| {
        Buckets { most: count, unit, shift, number }.bounds(times == Times::Store, times)
    };
    match spec.kind {
        Kind::TokenBucket { .. } => vec![meter(limit, times)],
        Kind::Queue { places } if tells_delay => vec![
            meter(limit, times),
            Bound::Spaced(Spaced { count, window, tick }),
            Bound::Overlap(Overlap::waiting(places.saturating_add(1), tick)),
        ],
        Kind::Queue { .. } => vec![meter(limit, times)],
        Kind::Fixed { offset } => {
            let monday = if window.is_multiple_of(WEEK) { MONDAY } else { 0 };
            let origin = (monday + offset.get()) % window;
            buckets(window, window - origin, 1)
        }
        Kind::FixedFromFirst => {
            Buckets { most: count, unit: window, shift: 0, number: 1 }.bounds(false, times)
        }
        Kind::Log => buckets(1, 0, window),
        Kind::SlidingBy { precision, strict } => {
            let precision = precision.get();
            buckets(precision, 0, window / precision + u64::from(strict))
        }
        Kind::Sliding => weighted(count, window, tick, times),
        Kind::Concurrent if times == Times::Store => {
            vec![Bound::Overlap(Overlap::held(count, window))]
        }
        _ => Vec::new(),
    }
}

fn meter(limit: &Limit, times: Times) -> Bound {
    let spec = limit.spec();
    let (count, window) = (i128::from(spec.count), i128::from(spec.window.get()));
    let (capacity, tick) = (i128::from(limit.capacity()), i128::from(limit.tick().get()));
    let full = capacity * window;
    let linear = match times {
        Times::Store => Linear {
            grid: Grid { unit: limit.tick().get(), shift: 0 },
            room: full,
            rate: count * tick,
            per: window,
        },
        Times::Caller => {
            Linear { grid: Grid::MICROS, room: full + count * (tick - 1), rate: count, per: window }
        }
    };
    Bound::Linear(linear.told_by(times))
}

fn weighted(count: u64, window: u64, tick: u64, times: Times) -> Vec<Bound> {
    let (most, length) = (i128::from(count), i128::from(window));
    // ⌈x/W⌉ is at most (x + W − 1)/W, and a span of no length at all holds L.
    let room = most * length + (length - 1 - most).max(0);
    let linear = Linear { grid: Grid::MICROS, room, rate: most, per: length };
    let mut bounds = vec![Bound::Linear(linear.told_by(times))];
    if times == Times::Store {
        bounds.push(Bound::Weighted(Weighted { most: count, window, tick }));
    }
    bounds
}

/// Windows made of buckets, of which any `number` that follow each other hold at most `most`.
#[derive(Clone, Copy, Debug)]
struct Buckets {
    most: u64,
    unit: u64,
    shift: u64,
    number: u64,
}

impl Buckets {
    fn bounds(self, aligned: bool, times: Times) -> Vec<Bound> {
        let Buckets { most, unit, shift, number } = self;
        let (count, length, n) = (i128::from(most), i128::from(unit), i128::from(number));
        if aligned {
            let grid = Grid { unit, shift };
            let linear = Linear { grid, room: count * n, rate: count, per: n };
            return vec![
                Bound::Within(Within { grid, span: number, most: u128::from(most) }),
                Bound::Linear(linear),
            ];
        }
        let per = n * length;
        let room = count * per + count * (length - 1);
        let linear = Linear { grid: Grid::MICROS, room, rate: count, per };
        let spans = (1..=2).map(|times: u64| {
            let span = (times * number - 1).saturating_mul(unit).saturating_add(1);
            Within { grid: Grid::MICROS, span, most: u128::from(most) * u128::from(times) }
        });
        let spans = spans.filter_map(|span| span.told_by(times)).map(Bound::Within);
        spans.chain([Bound::Linear(linear.told_by(times))]).collect()
    }
}
