//! The axes: positions of values, and labels.

mod count;
mod log;
mod time;

pub(super) use self::count::Counts;
pub(super) use self::log::Log;
pub(super) use self::time::{Times, even_multiple};
