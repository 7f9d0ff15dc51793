//! Admitted and offered cost over time: a panel for each candidate.

use tollgate::{Kind, Limit, Micros};

use super::axis::{Counts, Times};
use super::bins::Bins;
use super::canvas::{About, Canvas, Point, draw};
use super::palette::PaletteColor;
use super::panel::{self, Caption, FOOT, HEAD, LINE, Panel};
use crate::convert::to_i32;
use crate::report::{Outcome, Report, format};

/// How many panels are drawn; the others are only counted.
const MAX_PANELS: usize = 32;
/// How many window edges are drawn at most.
const MAX_EDGES: u64 = 24;

/// Draws the admitted and the offered cost over time.
#[must_use]
pub fn over_time(report: &Report) -> String {
    let about = about(report);
    let Some(bins) = Bins::for_timeline(&report.timeline) else {
        return panel::draw_empty(&about);
    };
    let shown_outcomes = report.outcomes.get(..MAX_PANELS).unwrap_or(&report.outcomes);
    let captions: Vec<_> =
        shown_outcomes.iter().map(|shown_outcome| caption(report, shown_outcome)).collect();
    let layout = Layout::new(&captions);
    let offered = bins.fill(&report.timeline.costs);
    let times = Times::new(bins.start, bins.end(), panel::labels_fit);
    let greatest = |costs: &[u64]| costs.iter().copied().max().unwrap_or_default();
    let admitted: Vec<_> = shown_outcomes
        .iter()
        .map(|shown_outcome| bins.fill(&shown_outcome.admitted_over_time))
        .collect();
    let most = admitted.iter().map(|costs| greatest(costs)).fold(greatest(&offered), u64::max);
    draw(&about, layout.height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report, &bins));
        draw_legend(canvas, report, &bins);
        for (at, caption) in captions.iter().enumerate() {
            let top = layout.top(at);
            caption.draw(canvas, top + LINE / 2, layout.lines);
            let plot = top + layout.lines * LINE + 20;
            let panel = Panel::new(&times, Counts::up_to(most), plot, plot + layout.plot);
            panel.draw_grid(canvas, layout.ticks());
            let costs = admitted.get(at).map_or(&[][..], Vec::as_slice);
            draw_areas(canvas, &panel, &bins, &offered, costs);
            if let Some(outcome) = shown_outcomes.get(at) {
                panel.draw_edges(canvas, &edges(outcome, &bins));
            }
        }
        panel::draw_times(canvas, &times, layout.height - FOOT);
    })
}

/// The layout of the panels.
#[derive(Debug)]
struct Layout {
    lines: i32,
    plot: i32,
    each: i32,
    height: i32,
}

impl Layout {
    fn new(captions: &[Caption]) -> Self {
        let lines = panel::lines(captions);
        let plot = match captions.len() {
            0 | 1 => 420,
            2 | 3 => 270,
            4..=8 => 190,
            _ => 140,
        };
        let each = lines * LINE + 20 + plot + 26;
        let panels = to_i32(captions.len());
        Layout { lines, plot, each, height: HEAD + LINE + 16 + panels * each + FOOT - 14 }
    }

    fn top(&self, at: usize) -> i32 {
        HEAD + LINE + 16 + to_i32(at) * self.each
    }

    fn ticks(&self) -> usize {
        if self.plot >= 270 { 4 } else { 2 }
    }
}

fn about(report: &Report) -> About {
    let describe = |outcome: &Outcome| {
        let Caption { name, figures } = caption(report, outcome);
        format!(" {name}: {figures}.")
    };
    let outcomes: String = report.outcomes.iter().map(describe).collect();
    let span = report.source.span.map_or_else(String::new, |(first, last)| {
        format!(", from {} to {} UTC", format::moment(first), format::moment(last))
    });
    About {
        id: "over-time",
        title: "Admitted and denied over time".to_owned(),
        description: format!(
            "{} of {} over time{span}.{outcomes}",
            format::counted(report.offered.requests, "request"),
            format::counted(report.keys, "key"),
        ),
    }
}

pub(super) fn caption(report: &Report, outcome: &Outcome) -> Caption {
    let (admitted, offered) = match report.unit() {
        "cost" => (outcome.admitted.cost, report.offered.cost),
        _ => (outcome.admitted.requests, report.offered.requests),
    };
    Caption {
        name: format::text(&outcome.name),
        figures: format!(
            "admitted {} of {} ({})",
            format::grouped(admitted),
            format::grouped(offered),
            format::share(admitted, offered)
        ),
    }
}

/// The subtitle.
fn below(report: &Report, bins: &Bins) -> String {
    let height = format!("{} per {}", report.unit(), format::per(Micros::new(bins.width)));
    let keys = format::counted(report.keys, "key");
    let more = report.outcomes.len().saturating_sub(MAX_PANELS);
    let more = if more > 0 { format!(" · {more} more are not drawn") } else { String::new() };
    let interrupted = if report.source.interrupted { " · interrupted" } else { "" };
    format!("{height} · {keys}{more}{interrupted} · times in UTC")
}

fn draw_legend(canvas: &Canvas<'_>, report: &Report, bins: &Bins) {
    let y = HEAD + LINE / 2 - 4;
    let mut x = 36;
    for (color, words) in [
        (PaletteColor::Admitted, "admitted"),
        (PaletteColor::Denied, "denied"),
        (PaletteColor::Offered, "offered"),
    ] {
        x = panel::draw_legend_entry(canvas, (x, y), color, words);
    }
    if report.outcomes.iter().any(|outcome| !edges(outcome, bins).is_empty()) {
        panel::draw_legend_entry(canvas, (x, y), PaletteColor::Edge, "a window begins");
    }
}

fn draw_areas(canvas: &Canvas<'_>, panel: &Panel, bins: &Bins, offered: &[u64], admitted: &[u64]) {
    let outline = steps(panel, bins, offered);
    canvas.polygon(closed(panel, &outline), PaletteColor::Denied);
    canvas.polygon(closed(panel, &steps(panel, bins, admitted)), PaletteColor::Admitted);
    canvas.path(outline, PaletteColor::Offered, 2);
}

/// The upper edge of the bars, without points on straight lines.
fn steps(panel: &Panel, bins: &Bins, costs: &[u64]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    let mut from = bins.start;
    for cost in costs {
        let to = from.saturating_add(bins.width);
        let (left, right) = (panel.at(from, *cost), panel.at(to, *cost));
        match points.last_mut() {
            Some(last) if *last == left => *last = right,
            _ => points.extend([left, right]),
        }
        from = to;
    }
    points
}

/// The area below an outline.
fn closed(panel: &Panel, outline: &[Point]) -> Vec<Point> {
    let (_, ground) = panel.at(0, 0);
    let ends = [outline.last(), outline.first()];
    let ends = ends.into_iter().flatten().map(|(x, _)| (*x, ground));
    outline.iter().copied().chain(ends).collect()
}

/// The starts of the windows of an outcome's fixed limits, for the limit with the fewest; empty if there
/// are too many.
fn edges(outcome: &Outcome, bins: &Bins) -> Vec<u64> {
    let all = outcome.limits.iter().filter_map(|limit| edges_of(limit, bins.start, bins.end()));
    all.min_by_key(Vec::len).unwrap_or_default()
}

/// The starts of the windows of a fixed limit within a time; `None` if there are too many, or for other
/// limits.
pub(super) fn edges_of(limit: &Limit, from: u64, to: u64) -> Option<Vec<u64>> {
    const WEEK: u64 = 7 * 86_400_000_000;
    const MONDAY: u64 = 4 * 86_400_000_000;
    let Kind::Fixed { offset } = limit.spec().kind else {
        return None;
    };
    let window = limit.spec().window.get();
    let monday = if window.is_multiple_of(WEEK) { MONDAY } else { 0 };
    let origin = (monday + offset.get()) % window;
    let first = from.saturating_sub(origin).div_ceil(window);
    let last = to.checked_sub(origin)? / window;
    if last.checked_sub(first)? >= MAX_EDGES {
        return None;
    }
    let edges = (first..=last).map(|times| times * window + origin);
    // The panel draws its own ends.
    Some(edges.filter(|edge| from < *edge && *edge < to).collect())
}
