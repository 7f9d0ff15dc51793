//! Pictures of a report: self-contained SVG for light and dark colour schemes.

mod axis;
mod bound;
mod burst;
mod canvas;
mod over_time;
mod panel;
mod peaks;

pub use burst::burst;
pub use over_time::over_time;
pub use peaks::peaks;

use crate::report::Report;

/// The most useful picture of a report: the burst picture for a single key if all decisions are
/// kept, otherwise the picture over time.
pub fn picture(report: &Report) -> String {
    let is_small = report.outcomes.iter().all(|outcome| !outcome.decisions.is_empty());
    if report.keys == 1 && is_small { burst(report) } else { over_time(report) }
}
