//! Whether a limit's numbers fit exact arithmetic, and which lower ones would.

use alloc::vec;
use alloc::vec::Vec;

use crate::error::LimitError;
use crate::exact::{EXACT, gcd};
use crate::leases::{self, Leases};
use crate::limit::{Kind, Rule, Spec};
use crate::log::Log;
use crate::meter::Meter;
use crate::time::Micros;
use crate::weighted::Weighted;
use crate::window::Window;

/// The most buckets a window is divided into.
const MAX_BUCKETS: u64 = 4_096;

/// The lengths of a tick that are tried, in µs.
const TICKS: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

/// Holds the numbers to their ranges, one by one.
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
        Kind::Concurrent if spec.count > leases::MAX_LEASES => {
            return Err(LimitError::Concurrency(spec.count));
        }
        Kind::TokenBucket { .. } | Kind::Queue { .. } | Kind::Concurrent if spec.count_denied => {
            return Err(LimitError::CountDenied);
        }
        _ => {}
    }
    Ok(())
}

/// Whether the notation has a unit for it, so that every limit has a text.
fn is_whole_ms(length: Micros) -> bool {
    length.get().is_multiple_of(1_000)
}

fn divides_window(precision: Micros, window: Micros) -> bool {
    precision > Micros::ZERO
        && is_whole_ms(precision)
        && window.get().is_multiple_of(precision.get())
        && window.get() / precision.get() <= MAX_BUCKETS
}

/// The arithmetic of a limit whose numbers are in range, if it is exact.
pub(crate) fn rule(spec: &Spec) -> Option<Rule> {
    let Spec { count, window, .. } = *spec;
    match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => {
            let queue = matches!(spec.kind, Kind::Queue { .. });
            ticks(count, window).find_map(|tick| meter_at(spec, tick, queue)).map(Rule::Meter)
        }
        Kind::Fixed { offset } => {
            doubled_is_exact(count, 1).then(|| Rule::Window(Window::aligned(count, window, offset)))
        }
        Kind::FixedFromFirst => {
            doubled_is_exact(count, 1).then(|| Rule::Window(Window::from_first(count, window)))
        }
        Kind::Log => doubled_is_exact(count, 1).then(|| Rule::Log(Log::exact(count, window))),
        Kind::Sliding => ticks(count, window)
            .find(|tick| doubled_is_exact(count, window.get() / tick))
            .map(|tick| Rule::Weighted(Weighted::new(count, window, tick))),
        Kind::SlidingBy { precision, strict } => {
            doubled_is_exact(count, window.get() / precision.get() + 1)
                .then(|| Rule::Log(Log::bucketed(count, window, precision, strict)))
        }
        Kind::Concurrent => Some(Rule::Leases(Leases::new(count, window))),
    }
}

/// Whether twice the capacity, `factor` times, stays exact.
fn doubled_is_exact(capacity: u64, factor: u64) -> bool {
    capacity.checked_mul(2).and_then(|x| x.checked_mul(factor)).is_some_and(|x| x < EXACT)
}

/// The ticks that divide the window and are no longer than what one unit takes: W/L.
fn ticks(count: u64, window: Micros) -> impl Iterator<Item = u64> {
    TICKS.into_iter().filter(move |&tick| {
        let short_enough = tick.checked_mul(count).is_some_and(|x| x <= window.get());
        tick == 1 || (window.get().is_multiple_of(tick) && short_enough)
    })
}

/// The token bucket or queue at this tick, with rate and unit reduced, if it is exact.
fn meter_at(spec: &Spec, tick: u64, queue: bool) -> Option<Meter> {
    let window = spec.window.get() / tick;
    let common = gcd(spec.count, window);
    let (per_tick, per_token) = (spec.count / common, window / common);
    let capacity = spec.capacity();
    let fits = doubled_is_exact(capacity, per_token) && doubled_is_exact(per_tick, 1);
    fits.then(|| Meter::new(capacity, per_token, per_tick, tick, queue))
}

/// The nearest lower limit that fits, for one that does not.
pub(crate) fn nearest_lower(spec: &Spec) -> Spec {
    let count = match spec.kind {
        Kind::TokenBucket { .. } | Kind::Queue { .. } => return nearest_meter(spec),
        Kind::Sliding => TICKS
            .into_iter()
            .filter(|tick| spec.window.get().is_multiple_of(*tick))
            .map(|tick| {
                let window = spec.window.get() / tick;
                let exact = most_exact(window);
                if tick == 1 { exact } else { exact.min(window) }
            })
            .max()
            .unwrap_or(1),
        Kind::SlidingBy { precision, .. } => most_exact(spec.window.get() / precision.get() + 1),
        _ => most_exact(1),
    };
    Spec { count: spec.count.min(count), ..*spec }
}

/// The greatest capacity that is exact when doubled and taken `factor` times.
const fn most_exact(factor: u64) -> u64 {
    (EXACT - 1) / 2 / factor
}

/// The greatest rate that fits beside the capacity; failing that, the greatest capacity.
///
/// A count that is a multiple of g, for g a divisor of the window, has a unit of at most
/// window / g. So the greatest count is found among the multiples of the window's divisors.
fn nearest_meter(spec: &Spec) -> Spec {
    let burst_is_count = spec.kind == Kind::TokenBucket { burst: spec.count };
    let mut best = 0;
    for tick in TICKS.into_iter().filter(|tick| spec.window.get().is_multiple_of(*tick)) {
        let window = spec.window.get() / tick;
        let most = spec.count.min(EXACT / 2 - 1).min(if tick == 1 { EXACT } else { window });
        for g in divisors(window) {
            let capacity = most_exact(window / g);
            let most = if burst_is_count { most.min(capacity) } else { most };
            if burst_is_count || spec.capacity() <= capacity {
                best = best.max(most / g * g);
            }
        }
    }
    if best > 0 {
        let kind = if burst_is_count { Kind::TokenBucket { burst: best } } else { spec.kind };
        return Spec { count: best, kind, ..*spec };
    }
    let count = spec.count.min(most_exact(1));
    let per_token = ticks(count, spec.window)
        .map(|tick| spec.window.get() / tick)
        .map(|window| window / gcd(count, window))
        .min()
        .unwrap_or(1);
    let capacity = most_exact(per_token).max(1);
    let kind = match spec.kind {
        Kind::Queue { .. } => Kind::Queue { places: capacity - 1 },
        _ => Kind::TokenBucket { burst: capacity },
    };
    Spec { count, kind, ..*spec }
}

/// All divisors of a window in µs, by its prime factors; only on the way to an error.
///
/// A window is at most 366 d and, as written, whole milliseconds: what is left of it without its
/// factors of 1000 is below 2^35, so trial division ends within 180,000 steps.
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
