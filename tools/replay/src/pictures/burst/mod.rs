//! Compares how limits treat the same requests: the cost admitted within the window at each moment, and
//! each request.

mod bound;
mod row;

use self::row::Row;
use super::axis::Times;
use super::canvas::{About, Canvas, draw};
use super::over_time;
use super::palette::PaletteColor;
use super::panel::{self, Caption, FOOT, HEAD, LINE};
use crate::report::{Report, format};

/// How many panels are drawn.
const MAX_PANELS: usize = 32;

/// The time shown before and after requests at a single moment.
const SINGLE_MOMENT_MARGIN: u64 = 500_000;

/// Draws how each limit treats the same requests: the sum within its window at each moment against its
/// bound, and each request. For more than one key, only the requests.
#[must_use]
pub fn burst(report: &Report) -> String {
    let all: Vec<_> =
        report.outcomes.iter().take(MAX_PANELS).map(|outcome| Row::new(report, outcome)).collect();
    let about = about(report, &all);
    let (Some(from), Some(to)) = (
        all.iter().filter_map(|row| Some(row.moments.first()?.time)).min(),
        all.iter().filter_map(Row::end).max(),
    ) else {
        return panel::draw_empty(&about);
    };
    let margin = if from == to { SINGLE_MOMENT_MARGIN } else { ((to - from) / 40).max(1) };
    let times =
        Times::new(from.saturating_sub(margin), to.saturating_add(margin), panel::labels_fit);
    let captions: Vec<_> = all.iter().map(|row| row.caption(report)).collect();
    let layout = Layout::new(&all, &captions);
    draw(&about, layout.height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report, &all));
        draw_legend(canvas, &all);
        let mut top = HEAD + LINE + 16;
        for (row, caption) in all.iter().zip(&captions) {
            caption.draw(canvas, top + LINE / 2, layout.lines);
            let plot = top + layout.lines * LINE + 20;
            let strip = plot + layout.plot(row);
            if let Some(bound) = &row.bound {
                bound.draw(canvas, &times, &all, (plot, strip - 12));
            }
            row.draw_requests(canvas, &times, &all, strip, layout.strip);
            top += layout.each(row);
        }
        panel::draw_times(canvas, &times, layout.height - FOOT);
    })
}

/// The layout of the panels.
#[derive(Debug)]
struct Layout {
    lines: i32,
    plot: i32,
    strip: i32,
    height: i32,
}

impl Layout {
    fn new(rows: &[Row<'_>], captions: &[Caption]) -> Self {
        let lines = panel::lines(captions);
        let (plot, strip) = match rows.len() {
            0..=2 => (280, 100),
            3 | 4 => (190, 80),
            _ => (150, 70),
        };
        let has_plot = rows.iter().any(|row| row.bound.is_some());
        let strip = if has_plot { strip } else { 180 };
        let layout = Layout { lines, plot, strip, height: 0 };
        let panels: i32 = rows.iter().map(|row| layout.each(row)).sum();
        Layout { height: HEAD + LINE + 16 + panels + FOOT, ..layout }
    }

    /// The height of the sums, including the gap below them.
    fn plot(&self, row: &Row<'_>) -> i32 {
        if row.bound.is_some() { self.plot + 12 } else { 0 }
    }

    fn each(&self, row: &Row<'_>) -> i32 {
        self.lines * LINE + 20 + self.plot(row) + self.strip + 26
    }
}

fn about(report: &Report, rows: &[Row<'_>]) -> About {
    let describe = |row: &Row<'_>| {
        let figures = over_time::caption(report, row.outcome).figures;
        let Caption { name, figures: most } = row.caption(report);
        if figures == most {
            format!(" {name}: {figures}.")
        } else {
            format!(" {name}: {figures}, {most}.")
        }
    };
    let outcomes: String = rows.iter().map(describe).collect();
    let requests = format::counted(report.offered.requests, "request");
    About {
        id: "burst",
        title: "How each limit treats the same requests".to_owned(),
        description: format!("{requests} of {}.{outcomes}", format::counted(report.keys, "key")),
    }
}

fn below(report: &Report, rows: &[Row<'_>]) -> String {
    let requests = format::counted(report.offered.requests, "request");
    let keys = format::counted(report.keys, "key");
    let is_binned = report.outcomes.iter().all(|outcome| outcome.decisions.is_empty());
    let steps = format!(", in steps of {}", format::window(report.timeline.width));
    let steps = if is_binned { &steps } else { "" };
    let what = match rows.iter().any(|row| row.bound.is_some()) {
        true => format!("{} admitted within each window · ", report.unit()),
        false => String::new(),
    };
    format!("{what}{requests} of {keys}{steps} · times in UTC")
}

fn draw_legend(canvas: &Canvas<'_>, rows: &[Row<'_>]) {
    let y = HEAD + LINE / 2 - 4;
    let mut x = 36;
    let mut keys =
        vec![(PaletteColor::Admitted, "admitted, up"), (PaletteColor::DeniedLine, "denied, down")];
    if rows.iter().any(|row| row.bound.is_some()) {
        keys.push((PaletteColor::Bound, "limit"));
    }
    if rows.iter().any(Row::is_over) {
        keys.push((PaletteColor::Over, "over it"));
    }
    if rows.iter().any(Row::has_edges) {
        keys.push((PaletteColor::Edge, "a window begins"));
    }
    for (color, words) in keys {
        x = panel::draw_legend_entry(canvas, (x, y), color, words);
    }
}
