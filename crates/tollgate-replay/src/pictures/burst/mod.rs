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
const MOST_PANELS: usize = 32;

/// What is shown before and after requests that all came at once.
const ALONE: u64 = 500_000;

/// Draws how each limit treats the same requests of one key: the sum within its window at each
/// moment against its count, and each request. Of more than one key, only the requests.
#[must_use]
pub fn burst(report: &Report) -> String {
    let all: Vec<_> =
        report.outcomes.iter().take(MOST_PANELS).map(|it| Row::of(report, it)).collect();
    let about = about(report, &all);
    let (Some(from), Some(to)) = (
        all.iter().filter_map(|row| Some(row.moments.first()?.time)).min(),
        all.iter().filter_map(|row| Some(row.moments.last()?.time)).max(),
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
        for (at, (row, caption)) in all.iter().zip(&captions).enumerate() {
            let top = layout.top(at);
            caption.draw(canvas, top + LINE / 2, layout.lines);
            let plot = top + layout.lines * LINE + 20;
            if let Some(bound) = &row.bound {
                bound.draw(canvas, &times, &all, (plot, plot + layout.plot));
            }
            row.draw_requests(canvas, &times, &all, plot + layout.plot + 12, layout.strip);
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
    each: i32,
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
        let (plot, strip) = if has_plot { (plot, strip) } else { (0, 180) };
        let each = lines * LINE + 20 + plot + 12 + strip + 26;
        let panels = i32::try_from(rows.len()).unwrap_or(i32::MAX);
        Layout { lines, plot, strip, each, height: HEAD + LINE + 16 + panels * each + FOOT }
    }

    fn top(&self, at: usize) -> i32 {
        HEAD + LINE + 16 + i32::try_from(at).unwrap_or_default() * self.each
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
