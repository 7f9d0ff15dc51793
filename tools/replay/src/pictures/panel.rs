//! Shared parts of the pictures: the headline, panels, and the axis of time.

use plotters::coord::CoordTranslate;
use plotters::coord::cartesian::Cartesian2d;
use plotters::style::text_anchor::HPos;

use super::axis::{Counts, Times};
use super::canvas::{About, Canvas, Face, Point, WIDTH, draw};
use super::palette::PaletteColor;

/// The horizontal range of the panels; labels of counts are to their left.
pub(super) const LEFT: i32 = 136;
pub(super) const RIGHT: i32 = WIDTH - 36;
/// The height of a headline with its subtitle.
pub(super) const HEAD: i32 = 110;
/// The height of a line of text.
pub(super) const LINE: i32 = 46;
/// The height of the axis of time.
pub(super) const FOOT: i32 = 104;

/// Whether there is space for this many labels of this width.
pub(super) fn labels_fit(ticks: usize, label: &str) -> bool {
    let each = Face::LABEL.width(label).saturating_add(34);
    i32::try_from(ticks).is_ok_and(|ticks| ticks.saturating_mul(each) <= RIGHT - LEFT)
}

/// A panel with time on the horizontal and counts on the vertical axis.
pub(super) struct Panel {
    plane: Cartesian2d<Times, Counts>,
    top: i32,
    bottom: i32,
}

impl Panel {
    pub(super) fn new(times: &Times, counts: Counts, top: i32, bottom: i32) -> Self {
        let plane = Cartesian2d::new(times.clone(), counts, (LEFT..RIGHT, bottom..top));
        Panel { plane, top, bottom }
    }

    pub(super) fn at(&self, time: u64, count: u64) -> Point {
        self.plane.translate(&(time, count))
    }

    pub(super) fn from(&self) -> u64 {
        self.plane.get_x_range().start
    }

    pub(super) fn to(&self) -> u64 {
        self.plane.get_x_range().end
    }

    /// Draws the grid lines and the labels of the counts.
    pub(super) fn draw_grid(&self, canvas: &Canvas<'_>, max_ticks: usize) {
        for tick in self.plane.x_spec().ticks() {
            let (x, _) = self.at(tick.at, 0);
            canvas.line((x, self.top), (x, self.bottom), PaletteColor::Grid, 2);
        }
        for tick in self.plane.y_spec().ticks(max_ticks) {
            let (_, y) = self.at(0, tick);
            canvas.line((LEFT, y), (RIGHT, y), PaletteColor::Grid, 2);
            canvas.text((LEFT - 14, y), &Counts::label(tick), Face::LABEL, HPos::Right);
        }
    }

    /// Draws the starts of windows.
    pub(super) fn draw_edges(&self, canvas: &Canvas<'_>, edges: &[u64]) {
        for edge in edges {
            let (x, _) = self.at(*edge, 0);
            canvas.line((x, self.top), (x, self.bottom), PaletteColor::Edge, 3);
        }
    }
}

/// Writes the headline and the subtitle.
pub(super) fn draw_head(canvas: &Canvas<'_>, headline: &str, below: &str) {
    let room = RIGHT - 36;
    canvas.text((36, 40), &Face::HEADLINE.shorten(headline, room), Face::HEADLINE, HPos::Left);
    canvas.text((36, 86), &Face::LABEL.shorten(below, room), Face::LABEL, HPos::Left);
}

/// The text above a panel: the name on the left, the figures on the right.
#[derive(Debug)]
pub(super) struct Caption {
    pub(super) name: String,
    pub(super) figures: String,
}

impl Caption {
    /// Whether both fit in one line.
    pub(super) fn is_short(&self) -> bool {
        let (name, figures) = (Face::TITLE.width(&self.name), Face::FIGURES.width(&self.figures));
        name.saturating_add(figures).saturating_add(40) <= RIGHT - 36
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

/// The number of lines of every caption.
pub(super) fn lines(captions: &[Caption]) -> i32 {
    if captions.iter().all(Caption::is_short) { 1 } else { 2 }
}

/// Writes the times below the panels.
pub(super) fn draw_times(canvas: &Canvas<'_>, times: &Times, y: i32) {
    let (mut free_from, mut date_from) = (12, 12);
    let panel = Panel::new(times, Counts::up_to(1), y, y + 8);
    for tick in times.ticks() {
        let (x, _) = panel.at(tick.at, 0);
        canvas.line((x, y), (x, y + 8), PaletteColor::Muted, 2);
        free_from = draw_centred(canvas, (x, y + 26), &tick.label, free_from);
        if let Some(context) = tick.context {
            date_from = draw_centred(canvas, (x, y + 66), &context, date_from);
        }
    }
}

/// Writes a label around a point within the picture, unless it would overlap the previous one. Returns where
/// the free space starts.
pub(super) fn draw_centred(canvas: &Canvas<'_>, (x, y): Point, label: &str, free_from: i32) -> i32 {
    let half = Face::LABEL.width(label) / 2;
    let middle = x.min(WIDTH - 12 - half);
    if middle - half < free_from {
        return free_from;
    }
    canvas.text((middle, y), label, Face::LABEL, HPos::Center);
    middle + half + 12
}

/// Draws an entry of the legend; returns where the next entry starts.
pub(super) fn draw_legend_entry(
    canvas: &Canvas<'_>,
    (x, y): Point,
    color: PaletteColor,
    words: &str,
) -> i32 {
    let (from, to) = ((x, y - 13), (x + 40, y + 13));
    match color {
        PaletteColor::Offered => {
            canvas.path(vec![(x, y + 10), (x, y - 10), (x + 40, y - 10)], color, 4)
        }
        PaletteColor::Bound | PaletteColor::Edge => canvas.line((x, y), (x + 44, y), color, 4),
        _ => canvas.rectangle(from, to, color),
    }
    canvas.text((x + 54, y), words, Face::LABEL, HPos::Left);
    x + 54 + Face::LABEL.width(words) + 36
}

/// Draws a picture for a report without requests.
pub(super) fn draw_empty(about: &About) -> String {
    draw(about, 240, |canvas| {
        draw_head(canvas, &about.title, "");
        canvas.text((36, 140), "No requests.", Face::FIGURES, HPos::Left);
    })
}
