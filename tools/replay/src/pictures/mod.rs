//! Pictures of a report: self-contained SVG for light and dark colour schemes.

mod axis;
mod bins;
mod burst;
mod canvas;
mod over_time;
mod palette;
mod panel;
mod peaks;
mod rolling;
mod text_metrics;

pub use self::burst::burst;
pub use self::over_time::over_time;
pub use self::peaks::peaks;
use crate::report::Report;

/// The most useful picture of a report: the burst picture for a single key if all decisions are kept,
/// otherwise the picture over time.
#[must_use]
pub fn picture(report: &Report) -> String {
    let is_small = report.outcomes.iter().all(|outcome| !outcome.decisions.is_empty());
    if report.keys == 1 && is_small { burst(report) } else { over_time(report) }
}
