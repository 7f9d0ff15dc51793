//! Shared parts of the pictures: the headline, panels, and the axis of time.

use plotters::style::text_anchor::HPos;
use tollgate::{Kind, Limit};

use super::axis::{Counts, Times};
use super::canvas::{About, Canvas, Face, PaletteColor, Point, WIDTH, draw};
use crate::report::format::{self, MONDAY, WEEK};
use crate::report::{Outcome, Report};

/// The horizontal range of the panels; labels of counts are to their left.
pub(super) const LEFT: i32 = 136;
pub(super) const RIGHT: i32 = WIDTH - 36;
/// The height of a headline with its subtitle.
pub(super) const HEAD: i32 = 110;
/// The height of a line of text.
pub(super) const LINE: i32 = 46;
/// Where the first panel starts, below the headline and the legend.
pub(super) const FIRST: i32 = HEAD + LINE + 16;
/// The height of the axis of time.
pub(super) const FOOT: i32 = 104;

const MAX_EDGES: u64 = 24;

/// Whether there is space for this many labels of this width.
pub(super) fn labels_fit(ticks: usize, label: &str) -> bool {
    let each = Face::LABEL.width(label).saturating_add(34);
    i32::try_from(ticks).is_ok_and(|ticks| ticks.saturating_mul(each) <= RIGHT - LEFT)
}

/// A panel with time on the horizontal and counts on the vertical axis.
pub(super) struct Panel<'a> {
    pub(super) times: &'a Times,
    pub(super) counts: Counts,
    pub(super) top: i32,
    pub(super) bottom: i32,
}

impl Panel<'_> {
    pub(super) fn at(&self, time: u64, count: u64) -> Point {
        let x = self.times.position(time, (LEFT, RIGHT));
        (x, self.counts.position(count, (self.bottom, self.top)))
    }

    /// Draws the grid lines and the labels of the counts.
    pub(super) fn draw_grid(&self, canvas: &Canvas<'_>, max_ticks: usize) {
        for tick in self.times.ticks() {
            let (x, _) = self.at(tick.at, 0);
            canvas.line((x, self.top), (x, self.bottom), PaletteColor::Grid, 2);
        }
        for tick in self.counts.ticks(max_ticks) {
            let (_, y) = self.at(0, tick);
            canvas.line((LEFT, y), (RIGHT, y), PaletteColor::Grid, 2);
            canvas.text((LEFT - 14, y), &Counts::label(tick), Face::LABEL, HPos::Right);
        }
    }

    pub(super) fn draw_edges(&self, canvas: &Canvas<'_>, edges: &[u64]) {
        for edge in edges {
            let (x, _) = self.at(*edge, 0);
            canvas.line((x, self.top), (x, self.bottom), PaletteColor::Edge, 3);
        }
    }
}

pub(super) fn draw_head(canvas: &Canvas<'_>, headline: &str, below: &str) {
    let room = RIGHT - 36;
    canvas.text((36, 40), &Face::HEADLINE.shorten(headline, room), Face::HEADLINE, HPos::Left);
    canvas.text((36, 86), &Face::LABEL.shorten(below, room), Face::LABEL, HPos::Left);
}

/// The area between an outline and a line below it.
pub(super) fn area(outline: &[Point], line: i32) -> Vec<Point> {
    let clipped = outline.iter().map(|(x, y)| (*x, (*y).min(line)));
    let ends = [outline.last(), outline.first()];
    clipped.chain(ends.into_iter().flatten().map(|(x, _)| (*x, line))).collect()
}

/// The starts of the windows of a fixed limit within a time; `None` if there are too many, or for
/// other limits.
pub(super) fn edges(limit: &Limit, from: u64, to: u64) -> Option<Vec<u64>> {
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

/// The text above a panel: the name on the left, the figures on the right.
pub(super) struct Caption {
    pub(super) name: String,
    pub(super) figures: String,
}

impl Caption {
    /// The caption with the admitted part of an outcome.
    pub(super) fn new(report: &Report, outcome: &Outcome) -> Self {
        let (admitted, offered) = match report.unit() {
            "cost" => (outcome.admitted.cost, report.offered.cost),
            _ => (outcome.admitted.requests, report.offered.requests),
        };
        let share = format::share(admitted, offered);
        let (admitted, offered) = (format::grouped(admitted), format::grouped(offered));
        let figures = format!("admitted {admitted} of {offered} ({share})");
        Caption { name: format::text(&outcome.name), figures }
    }

    /// Writes the caption in the given number of lines, the first at `y`.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, y: i32, lines: i32) {
        let name = Face::TITLE.shorten(&self.name, RIGHT - 36);
        canvas.text((36, y), &name, Face::TITLE, HPos::Left);
        let figures = Face::FIGURES.shorten(&self.figures, RIGHT - 36);
        match lines {
            1 => canvas.text((RIGHT, y), &figures, Face::FIGURES, HPos::Right),
            _ => canvas.text((36, y + LINE), &figures, Face::FIGURES, HPos::Left),
        }
    }
}

/// The number of lines of every caption: 1 if the name and the figures of each fit in one line.
pub(super) fn lines(captions: &[Caption]) -> i32 {
    let is_short = |Caption { name, figures }: &Caption| {
        let width = Face::TITLE.width(name).saturating_add(Face::FIGURES.width(figures));
        width.saturating_add(40) <= RIGHT - 36
    };
    if captions.iter().all(is_short) { 1 } else { 2 }
}

pub(super) fn draw_times(canvas: &Canvas<'_>, times: &Times, y: i32) {
    let (mut free_from, mut date_from) = (12, 12);
    for tick in times.ticks() {
        let x = times.position(tick.at, (LEFT, RIGHT));
        canvas.line((x, y), (x, y + 8), PaletteColor::Muted, 2);
        free_from = draw_centred(canvas, (x, y + 26), &tick.label, free_from);
        if let Some(context) = tick.context {
            date_from = draw_centred(canvas, (x, y + 66), &context, date_from);
        }
    }
}

/// Writes a label around a point within the picture, unless it would overlap the previous one.
/// Returns where the free space starts.
pub(super) fn draw_centred(canvas: &Canvas<'_>, (x, y): Point, label: &str, free_from: i32) -> i32 {
    let half = Face::LABEL.width(label) / 2;
    let middle = x.min(WIDTH - 12 - half);
    if middle - half < free_from {
        return free_from;
    }
    canvas.text((middle, y), label, Face::LABEL, HPos::Center);
    middle + half + 12
}

/// Draws the legend between the subtitle and the first panel.
pub(super) fn draw_legend(canvas: &Canvas<'_>, entries: &[(PaletteColor, &str)]) {
    let (mut x, y) = (36, HEAD + LINE / 2 - 4);
    for (color, words) in entries {
        match color {
            PaletteColor::Offered => {
                canvas.path(vec![(x, y + 10), (x, y - 10), (x + 40, y - 10)], *color, 4)
            }
            PaletteColor::Bound | PaletteColor::Edge => canvas.line((x, y), (x + 44, y), *color, 4),
            _ => canvas.rectangle((x, y - 13), (x + 40, y + 13), *color),
        }
        canvas.text((x + 54, y), words, Face::LABEL, HPos::Left);
        x += 54 + Face::LABEL.width(words) + 36;
    }
}

/// Draws a picture for a report without requests.
pub(super) fn draw_empty(about: &About) -> String {
    draw(about, 240, |canvas| {
        draw_head(canvas, &about.title, "");
        canvas.text((36, 140), "No requests.", Face::FIGURES, HPos::Left);
    })
}
