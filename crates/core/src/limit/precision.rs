//! Exact arithmetic: validates the numbers of a limit, and finds the nearest ones that fit.

use alloc::vec;
use alloc::vec::Vec;

use super::spec::{Kind, Spec};
use crate::algorithm::{
    Algorithm, Concurrency, EXACT, FixedWindow, MAX_LEASES, SlidingLog, SlidingWindowCounter,
    TokenBucket, gcd,
};
use crate::error::LimitError;
use crate::time::Micros;

/// The most buckets a window is divided into.
const MAX_BUCKETS: u64 = 4_096;

/// The lengths of a tick to try, in µs.
const TICKS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

pub(crate) fn check_ranges(spec: &Spec) -> Result<(), LimitError> {
    if spec.count == 0 {
        return Err(LimitError::ZeroCount);
    }
    let window = spec.window;
    let in_range = (Micros::from_millis(1)..=Micros::MAX_WINDOW).contains(&window);
    if !in_range || !is_whole_ms(window) {
        return Err(LimitError::Window(window));
    }
    match spec.kind {
        Kind::TokenBucket { burst: 0 } => return Err(LimitError::ZeroBurst),
        Kind::Fixed { offset } if offset >= window || !is_whole_ms(offset) => {
            return Err(LimitError::Offset { offset, window });
        }
        Kind::SlidingBy { precision, .. } if !divides_window(precision, window) => {
            return Err(LimitError::Precision { precision, window });
        }
        Kind::Concurrent if spec.count > MAX_LEASES => {
            return Err(LimitError::Concurrency(spec.count));
        }
        Kind::TokenBucket { .. } | Kind::Queue { .. } | Kind::Concurrent if spec.count_denied => {
            return Err(LimitError::CountDenied);
        }
        _ => {}
    }
    Ok(())
}

/// Whether the notation can express the length.
fn is_whole_ms(length: Micros) -> bool {
    length.get().is_multiple_of(1_000)
}

fn divides_window(precision: Micros, window: Micros) -> bool {
    precision > Micros::ZERO
        && is_whole_ms(precision)
        && window.get().is_multiple_of(precision.get())
        && window.get() / precision.get() <= MAX_BUCKETS
}

/// The precision nearest to this one that divides the window.
pub(crate) fn nearest_precision(precision: Micros, window: Micros) -> Micros {
    let precisions = (1..=MAX_BUCKETS)
        .filter(|buckets| window.get().is_multiple_of(*buckets))
        .map(|buckets| Micros::new(window.get() / buckets))
        .filter(|candidate| divides_window(*candidate, window));
    let nearest = precisions.min_by_key(|candidate| candidate.get().abs_diff(precision.get()));
    // One bucket always fits.
    nearest.unwrap_or(window)
}

/// The algorithm of a limit whose numbers are in range, if its arithmetic is exact.
pub(crate) fn algorithm(spec: &Spec) -> Option<Algorithm> {
    let Spec { count, window, .. } = *spec;
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            let queue = matches!(spec.kind, Kind::Queue { .. });
            let mut ticks = ticks(count, window);
            ticks.find_map(|tick| token_bucket(spec, tick, queue)).map(Algorithm::TokenBucket)
        }
        Kind::Fixed { offset } => doubled_is_exact(count, 1)
            .then(|| Algorithm::FixedWindow(FixedWindow::aligned(count, window, offset))),
        Kind::FixedFromFirst => doubled_is_exact(count, 1)
            .then(|| Algorithm::FixedWindow(FixedWindow::from_first(count, window))),
        Kind::Log => doubled_is_exact(count, 1)
            .then(|| Algorithm::SlidingLog(SlidingLog::exact(count, window))),
        Kind::Sliding => ticks(count, window)
            .find(|tick| doubled_is_exact(count, window.get() / tick))
            .map(|tick| Algorithm::SlidingWindow(SlidingWindowCounter::new(count, window, tick))),
        Kind::SlidingBy { precision, strict } => {
            let log = || SlidingLog::bucketed(count, window, precision, strict);
            doubled_is_exact(count, window.get() / precision.get() + 1)
                .then(|| Algorithm::SlidingLog(log()))
        }
        Kind::Concurrent => Some(Algorithm::Concurrency(Concurrency::new(count, window))),
    }
}

/// Whether twice the capacity times `factor` is exact.
fn doubled_is_exact(capacity: u64, factor: u64) -> bool {
    capacity.checked_mul(2).and_then(|x| x.checked_mul(factor)).is_some_and(|x| x < EXACT)
}

/// The ticks that divide the window and are not longer than window / count.
fn ticks(count: u64, window: Micros) -> impl Iterator<Item = u64> {
    TICKS.into_iter().filter(move |&tick| {
        let short_enough = tick.checked_mul(count).is_some_and(|x| x <= window.get());
        tick == 1 || (window.get().is_multiple_of(tick) && short_enough)
    })
}

/// The token bucket or queue with this tick and a reduced rate, if it is exact.
fn token_bucket(spec: &Spec, tick: u64, queue: bool) -> Option<TokenBucket> {
    let window = spec.window.get() / tick;
    let common = gcd(spec.count, window);
    let (per_tick, per_token) = (spec.count / common, window / common);
    let capacity = spec.capacity();
    let fits = doubled_is_exact(capacity, per_token) && doubled_is_exact(per_tick, 1);
    fits.then(|| TokenBucket::new(capacity, per_token, per_tick, tick, queue))
}

/// The nearest lower limit that is exact, for one that is not.
#[expect(clippy::expect_used, reason = "a tick of 1 µs divides every window")]
pub(crate) fn nearest_lower(spec: &Spec) -> Spec {
    let count = match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => return nearest_token_bucket(spec),
        Kind::Sliding => TICKS
            .into_iter()
            .filter(|tick| spec.window.get().is_multiple_of(*tick))
            .map(|tick| {
                let window = spec.window.get() / tick;
                let exact = max_exact(window);
                if tick == 1 { exact } else { exact.min(window) }
            })
            .max()
            .expect("a tick of 1 µs divides every window"),
        Kind::SlidingBy { precision, .. } => max_exact(spec.window.get() / precision.get() + 1),
        _ => max_exact(1),
    };
    Spec { count: spec.count.min(count), ..*spec }
}

/// The greatest capacity of which twice the capacity times `factor` is exact.
const fn max_exact(factor: u64) -> u64 {
    (EXACT - 1) / 2 / factor
}

/// The greatest rate that is exact with this capacity; if there is none, the greatest capacity.
///
/// If the count is a multiple of a divisor g of the window, a token has at most window / g units.
/// So the greatest count is a multiple of one of the window's divisors.
#[expect(clippy::expect_used, reason = "a tick of 1 µs divides every window")]
fn nearest_token_bucket(spec: &Spec) -> Spec {
    let burst_is_count = spec.kind == Kind::TokenBucket { burst: spec.count };
    let mut best = 0;
    for tick in TICKS.into_iter().filter(|tick| spec.window.get().is_multiple_of(*tick)) {
        let window = spec.window.get() / tick;
        let max = spec.count.min(EXACT / 2 - 1).min(if tick == 1 { EXACT } else { window });
        for g in divisors(window) {
            let capacity = max_exact(window / g);
            let max = if burst_is_count { max.min(capacity) } else { max };
            if burst_is_count || spec.capacity() <= capacity {
                best = best.max(max / g * g);
            }
        }
    }
    if best > 0 {
        let kind = if burst_is_count { Kind::TokenBucket { burst: best } } else { spec.kind };
        return Spec { count: best, kind, ..*spec };
    }
    let count = spec.count.min(max_exact(1));
    let per_token = ticks(count, spec.window)
        .map(|tick| spec.window.get() / tick)
        .map(|window| window / gcd(count, window))
        .min()
        .expect("a tick of 1 µs divides every window");
    let capacity = max_exact(per_token).max(1);
    let kind = match spec.kind {
        Kind::Queue { .. } => Kind::Queue { places: capacity - 1 },
        _ => Kind::TokenBucket { burst: capacity },
    };
    Spec { count, kind, ..*spec }
}

/// All divisors of a window in µs, from its prime factors. Only error messages need them.
///
/// A window is at most 366 d and whole milliseconds. Divided by 1000 it is below 2^35, so that
/// trial division ends within 180,000 steps.
fn divisors(mut n: u64) -> Vec<u64> {
    let mut all = vec![1];
    let mut prime = 2;
    while n > 1 {
        if prime * prime > n {
            prime = n;
        }
        let known = all.len();
        let mut power = 1;
        while n.is_multiple_of(prime) {
            n /= prime;
            power *= prime;
            all.extend_from_within(..known);
            let new = all.len() - known;
            all[new..].iter_mut().for_each(|x| *x *= power);
        }
        prime += 1;
    }
    all
}
