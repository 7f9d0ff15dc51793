//! Axes: where a value lies, which values are labelled, and how.

mod count;
mod log;
mod time;

pub(super) use self::count::Counts;
pub(super) use self::log::Log;
pub(super) use self::time::{Times, even_multiple};

/// Where a value lies between two ends, in whole units of the picture.
fn position(value: u64, (from, to): (u64, u64), ends: (i32, i32)) -> i32 {
    let length = i128::from(to.saturating_sub(from)).max(1);
    let along = i128::from(value.clamp(from, to.max(from)) - from);
    let run = i128::from(ends.1) - i128::from(ends.0);
    let moved = (along * run * 2 + length * run.signum()) / (length * 2);
    ends.0.saturating_add(i32::try_from(moved).unwrap_or_default())
}
