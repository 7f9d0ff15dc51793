//! Pictures of a report, in light and dark: SVG that needs nothing but itself.

mod axis;
mod bins;
mod burst;
mod canvas;
mod ink;
pub(crate) mod lettering;
mod over_time;
mod panel;
mod peaks;
mod rolling;

use plotters::style::text_anchor::HPos;

pub use self::burst::burst;
use crate::report::Report;

use self::canvas::{About, Face};
pub use self::over_time::over_time;
pub use self::peaks::peaks;

/// The picture that says most of a report: of one key whose every decision is kept what each limit
/// did with its burst, else what was admitted over time.
#[must_use]
pub fn picture(report: &Report) -> String {
    let is_small = report.outcomes.iter().all(|outcome| !outcome.decisions.is_empty());
    if report.keys == 1 && is_small { burst(report) } else { over_time(report) }
}

/// A picture where nothing happened.
fn draw_nothing(about: &About) -> String {
    canvas::draw(about, 240, |canvas| {
        panel::draw_head(canvas, &about.title, "");
        canvas.text((36, 140), "There was no request.", Face::FIGURES, HPos::Left);
    })
}
