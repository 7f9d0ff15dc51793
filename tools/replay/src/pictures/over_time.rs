//! Admitted and offered cost over time: a panel for each candidate.

use tollgate::Micros;

use super::axis::{Counts, Times, even_multiple};
use super::canvas::{About, Canvas, PaletteColor, Point, draw};
use super::panel::{self, Caption, FIRST, FOOT, LINE, Panel};
use crate::convert::{to_i32, to_u64};
use crate::report::{Outcome, Report, Timeline, format};

/// How many panels are drawn; the others are only counted.
const MAX_PANELS: usize = 32;
/// How many bins are distinguishable at the usual size of a picture.
const MAX_BINS: u64 = 320;

/// Draws the admitted and the offered cost over time.
pub fn over_time(report: &Report) -> String {
    let about = about(report);
    let Some(bins) = Bins::for_timeline(&report.timeline) else {
        return panel::draw_empty(&about);
    };
    let outcomes = report.outcomes.get(..MAX_PANELS).unwrap_or(&report.outcomes);
    let captions: Vec<_> = outcomes.iter().map(|outcome| Caption::new(report, outcome)).collect();
    let layout = Layout::new(&captions);
    let offered = bins.fill(&report.timeline.costs);
    let times = Times::new(bins.start, bins.end(), panel::labels_fit);
    let admitted: Vec<_> =
        outcomes.iter().map(|outcome| bins.fill(&outcome.admitted_over_time)).collect();
    let most = admitted.iter().flatten().chain(&offered).copied().max().unwrap_or_default();
    draw(&about, layout.height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report, &bins));
        draw_legend(canvas, report, &bins);
        let mut top = FIRST;
        for ((outcome, caption), admitted) in outcomes.iter().zip(&captions).zip(&admitted) {
            caption.draw(canvas, top + LINE / 2, layout.lines);
            let plot = top + layout.lines * LINE + 20;
            let (counts, bottom) = (Counts::up_to(most), plot + layout.plot);
            let panel = Panel { times: &times, counts, top: plot, bottom };
            panel.draw_grid(canvas, if layout.plot >= 270 { 4 } else { 2 });
            draw_areas(canvas, &panel, &bins, &offered, admitted);
            panel.draw_edges(canvas, &edges(outcome, &bins));
            top += layout.each;
        }
        panel::draw_times(canvas, &times, layout.height - FOOT);
    })
}

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
        Layout { lines, plot, each, height: FIRST + to_i32(captions.len()) * each + FOOT - 14 }
    }
}

fn about(report: &Report) -> About {
    let describe = |outcome: &Outcome| {
        let Caption { name, figures } = Caption::new(report, outcome);
        format!(" {name}: {figures}.")
    };
    let outcomes: String = report.outcomes.iter().map(describe).collect();
    let span = report.source.span.map_or_else(String::new, |(first, last)| {
        format!(", from {} to {} UTC", format::moment(first), format::moment(last))
    });
    let requests = format::counted(report.offered.requests, "request");
    let keys = format::counted(report.keys, "key");
    About {
        id: "over-time",
        title: "Admitted and denied over time".to_owned(),
        description: format!("{requests} of {keys} over time{span}.{outcomes}"),
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
    let mut entries = vec![
        (PaletteColor::Admitted, "admitted"),
        (PaletteColor::Denied, "denied"),
        (PaletteColor::Offered, "offered"),
    ];
    if report.outcomes.iter().any(|outcome| !edges(outcome, bins).is_empty()) {
        entries.push((PaletteColor::Edge, "a window begins"));
    }
    panel::draw_legend(canvas, &entries);
}

fn draw_areas(
    canvas: &Canvas<'_>,
    panel: &Panel<'_>,
    bins: &Bins,
    offered: &[u64],
    admitted: &[u64],
) {
    let outline = steps(panel, bins, offered);
    let (_, ground) = panel.at(0, 0);
    canvas.polygon(panel::area(&outline, ground), PaletteColor::Denied);
    let admitted = steps(panel, bins, admitted);
    canvas.polygon(panel::area(&admitted, ground), PaletteColor::Admitted);
    canvas.path(outline, PaletteColor::Offered, 2);
}

/// The upper edge of the bars, without points on straight lines.
fn steps(panel: &Panel<'_>, bins: &Bins, costs: &[u64]) -> Vec<Point> {
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

/// The starts of the windows of an outcome's fixed limits, for the limit with the fewest; empty if
/// there are too many.
fn edges(outcome: &Outcome, bins: &Bins) -> Vec<u64> {
    let all = outcome.limits.iter().filter_map(|limit| panel::edges(limit, bins.start, bins.end()));
    all.min_by_key(Vec::len).unwrap_or_default()
}

/// Bins of equal width, which is a multiple of that of the timeline.
struct Bins {
    timeline_start: u64,
    timeline_width: u64,
    /// Microseconds since the epoch; a multiple of the width.
    start: u64,
    /// Microseconds.
    width: u64,
    count: usize,
}

impl Bins {
    /// Bins for a timeline; `None` if it is empty.
    fn for_timeline(timeline: &Timeline) -> Option<Self> {
        let (start, width) = (timeline.start.as_micros(), timeline.width.get());
        let length = u64::try_from(timeline.costs.len()).ok()?;
        if width == 0 || length == 0 {
            return None;
        }
        let last = start.saturating_add(width.saturating_mul(length - 1));
        let count = |wide: u64| last / wide - start / wide + 1;
        let whole = width.saturating_mul(length.div_ceil(MAX_BINS - 1));
        // An even width is easier to read, unless it leaves far fewer bins.
        let fits = |even: u64| count(even) <= MAX_BINS && even / 8 <= whole;
        let wide = even_multiple(width, fits).unwrap_or(whole);
        Some(Bins {
            timeline_start: start,
            timeline_width: width,
            start: start / wide * wide,
            width: wide,
            count: usize::try_from(count(wide)).ok()?,
        })
    }

    /// Sums the costs of the timeline into these bins.
    fn fill(&self, costs: &[u64]) -> Vec<u64> {
        let mut filled = vec![0_u64; self.count];
        let mut at = self.timeline_start;
        for cost in costs {
            let place = (at - self.start) / self.width;
            let bin = usize::try_from(place).ok().and_then(|place| filled.get_mut(place));
            if let Some(bin) = bin {
                *bin = bin.saturating_add(*cost);
            }
            at = at.saturating_add(self.timeline_width);
        }
        filled
    }

    fn end(&self) -> u64 {
        let count = to_u64(self.count);
        self.start.saturating_add(self.width.saturating_mul(count))
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Timestamp;

    use super::*;

    #[test]
    fn bins_are_even_and_few_and_lose_nothing() {
        for (start, width, length, expected_width, expected_count) in [
            (0, 1_000_000, 1, 1_000_000, 1),
            (7_000_000, 1_000_000, 320, 1_000_000, 320),
            (7_000_000, 1_000_000, 321, 2_000_000, 161),
            (0, 1_000_000, 86_400, 300_000_000, 288),
            (0, 7, 10_000, 7 * 32, 313),
            (8_500_000_000_000_000, u64::MAX, 3, u64::MAX, 2),
        ] {
            let timeline = Timeline {
                start: Timestamp::from_micros(start),
                width: Micros::new(width),
                costs: vec![1; length],
            };
            let bins = Bins::for_timeline(&timeline).unwrap();
            assert_eq!((bins.width, bins.count), (expected_width, expected_count), "{start}");
            let filled: u64 = bins.fill(&timeline.costs).iter().sum();
            assert_eq!(filled, u64::try_from(length).unwrap(), "{start}");
        }
        assert!(Bins::for_timeline(&Timeline::default()).is_none());
    }
}
