//! How each limit treats the same requests: what it admitted within its window at each moment, and
//! below it each request.

mod bound;
mod row;

use self::row::Row;
use super::axis::Times;
use super::canvas::{About, Canvas, draw};
use super::ink::Ink;
use super::over_time;
use super::panel::{self, Caption, FOOT, HEAD, LINE};
use crate::report::{Report, shown};

/// The most panels that are drawn.
const MAX_PANELS: usize = 32;

/// What is shown before and after requests that all came at once.
const ALONE: u64 = 500_000;

/// Draws how each limit treats the same requests of one key: the sum within its window at each
/// moment against its count, and each request. Of more than one key, only the requests.
#[must_use]
pub fn burst(report: &Report) -> String {
    let all: Vec<_> =
        report.outcomes.iter().take(MAX_PANELS).map(|outcome| Row::of(report, outcome)).collect();
    let about = about(report, &all);
    let (Some(from), Some(to)) = (
        all.iter().filter_map(|row| Some(row.moments.first()?.time)).min(),
        all.iter().filter_map(Row::end).max(),
    ) else {
        return super::draw_nothing(&about);
    };
    let margin = if from == to { ALONE } else { ((to - from) / 40).max(1) };
    let times =
        Times::new(from.saturating_sub(margin), to.saturating_add(margin), panel::labels_fit);
    let captions: Vec<_> = all.iter().map(|row| row.caption(report)).collect();
    let layout = Layout::new(&all, &captions);
    draw(&about, layout.height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report, &all));
        draw_keys(canvas, &all);
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

/// Where the panels lie.
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

    /// How high the sums within the window are drawn, with the gap below them.
    fn plot(&self, row: &Row<'_>) -> i32 {
        if row.bound.is_some() { self.plot + 12 } else { 0 }
    }

    fn each(&self, row: &Row<'_>) -> i32 {
        self.lines * LINE + 20 + self.plot(row) + self.strip + 26
    }
}

fn about(report: &Report, rows: &[Row<'_>]) -> About {
    let told = |row: &Row<'_>| {
        let figures = over_time::caption(report, row.outcome).figures;
        let Caption { name, figures: most } = row.caption(report);
        if figures == most {
            format!(" {name}: {figures}.")
        } else {
            format!(" {name}: {figures}, {most}.")
        }
    };
    let outcomes: String = rows.iter().map(told).collect();
    let requests = shown::counted(report.offered.requests, "request");
    About {
        id: "burst",
        title: "How each limit treats the same requests".to_owned(),
        description: format!("{requests} of {}.{outcomes}", shown::counted(report.keys, "key")),
    }
}

fn below(report: &Report, rows: &[Row<'_>]) -> String {
    let requests = shown::counted(report.offered.requests, "request");
    let keys = shown::counted(report.keys, "key");
    let is_binned = report.outcomes.iter().all(|outcome| outcome.decisions.is_empty());
    let steps = format!(", in steps of {}", shown::window(report.timeline.width));
    let steps = if is_binned { &steps } else { "" };
    let what = match rows.iter().any(|row| row.bound.is_some()) {
        true => format!("{} admitted within each window · ", report.unit()),
        false => String::new(),
    };
    format!("{what}{requests} of {keys}{steps} · times in UTC")
}

fn draw_keys(canvas: &Canvas<'_>, rows: &[Row<'_>]) {
    let y = HEAD + LINE / 2 - 4;
    let mut x = 36;
    let mut keys = vec![(Ink::Admitted, "admitted, up"), (Ink::DeniedLine, "denied, down")];
    if rows.iter().any(|row| row.bound.is_some()) {
        keys.push((Ink::Bound, "limit"));
    }
    if rows.iter().any(Row::is_over) {
        keys.push((Ink::Over, "over it"));
    }
    if rows.iter().any(Row::has_edges) {
        keys.push((Ink::Edge, "a window begins"));
    }
    for (ink, words) in keys {
        x = panel::draw_key(canvas, (x, y), ink, words);
    }
}
