//! The distribution of the peaks of single keys, and the capacity of limits.

use plotters::style::text_anchor::HPos;
use tollgate::Limit;

use super::axis::{Counts, Log};
use super::canvas::{About, Canvas, Face, PaletteColor, draw};
use super::panel::{self, Caption, HEAD, LEFT, LINE, RIGHT};
use crate::convert::to_i32;
use crate::report::{Peaks, Report, format};

const MAX_PANELS: usize = 12;
const MAX_MARKS: usize = 8;
/// The height of the label of a mark.
const MARK: i32 = 40;
const PLOT: i32 = 250;
const FOOT: i32 = 40;
/// The ends of bars are these numbers times powers of ten, which are about equally far apart.
const BAR_ENDS: [u64; 5] = [1, 2, 3, 5, 7];

/// Draws the distribution of the peaks within each window.
pub fn peaks(report: &Report) -> String {
    let all = report.peaks.iter().filter(|peak| !peak.keys_by_cost.is_empty());
    let rows: Vec<_> = all.take(MAX_PANELS).map(|peaks| Row::new(report, peaks)).collect();
    let about = about(report, &rows);
    let Some(highest) = rows.iter().map(Row::highest).max() else {
        return panel::draw_empty(&about);
    };
    let costs = Log::new(7, tenths(bar_end_from(highest)));
    let tallest = rows.iter().flat_map(|row| &row.bars).map(|bar| bar.keys).max().unwrap_or(1);
    let captions: Vec<_> = rows.iter().map(Row::caption).collect();
    let lines = panel::lines(&captions);
    let each = |row: &Row<'_>| lines * LINE + row.marks_height() + 16 + PLOT + 30;
    let height = HEAD + 20 + rows.iter().map(each).sum::<i32>() + FOOT;
    draw(&about, height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report));
        let mut top = HEAD + 20;
        for (row, caption) in rows.iter().zip(&captions) {
            caption.draw(canvas, top + LINE / 2, lines);
            row.draw(canvas, &costs, tallest, top + lines * LINE + row.marks_height() + 16);
            top += each(row);
        }
        draw_costs(canvas, &costs, top - 30);
    })
}

/// A window.
struct Row<'a> {
    peaks: &'a Peaks,
    bars: Vec<Bar>,
    /// The limits with this window: their capacity and label.
    marks: Vec<(u64, String)>,
}

/// The number of keys with a peak above one cost and at most another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bar {
    above: u64,
    to: u64,
    keys: u64,
}

impl<'a> Row<'a> {
    fn new(report: &Report, peaks: &'a Peaks) -> Self {
        let limits = report.outcomes.iter().flat_map(|outcome| &outcome.limits);
        let limits =
            limits.filter(|limit| !limit.is_concurrent() && limit.spec().window == peaks.window);
        // What a bucket or a queue accepts at once, if that exceeds its refill.
        let most = |limit: &Limit| limit.capacity().max(limit.spec().count);
        let mut counts: Vec<u64> = limits.map(most).collect();
        counts.sort_unstable();
        counts.dedup();
        counts.truncate(MAX_MARKS);
        let marks = counts.into_iter().map(|count| {
            let above = peaks.keys_by_cost.iter().filter(|(cost, _)| *cost > count);
            let above = above.fold(0_u64, |sum, (_, keys)| sum.saturating_add(*keys));
            let keys = format::counted(above, "key");
            (count, format!("limit {}: {keys} above", format::grouped(count)))
        });
        Row { peaks, bars: bars(&peaks.keys_by_cost), marks: marks.collect() }
    }

    /// The highest number on the axis.
    fn highest(&self) -> u64 {
        let bars = self.bars.iter().map(|bar| bar.to);
        bars.chain(self.marks.iter().map(|(count, _)| *count)).max().unwrap_or(1)
    }

    fn caption(&self) -> Caption {
        let figures = self.peaks.highest.as_ref().map_or_else(String::new, |(cost, key)| {
            format!("highest: {} by {}", format::grouped(*cost), format::key(key))
        });
        Caption { name: format!("Within {}", format::window(self.peaks.window)), figures }
    }

    fn marks_height(&self) -> i32 {
        to_i32(self.marks.len()) * MARK
    }

    fn draw(&self, canvas: &Canvas<'_>, costs: &Log, tallest: u64, top: i32) {
        let bottom = top + PLOT;
        let keys = Log::new(5, tenths(tallest).saturating_add(tenths(tallest) / 3));
        let x = |cost| costs.position(cost, (LEFT, RIGHT));
        let y = |count| keys.position(count, (bottom, top));
        for tick in keys.ticks(5) {
            let y = y(tick);
            canvas.line((LEFT, y), (RIGHT, y), PaletteColor::Grid, 2);
            canvas.text((LEFT - 14, y), &Counts::label(tick / 10), Face::LABEL, HPos::Right);
        }
        for bar in &self.bars {
            // A logarithm has no 0 for the lower end of the first bar.
            let above = if bar.above == 0 { 7 } else { tenths(bar.above) };
            let from = (x(above) + 2, y(tenths(bar.keys)));
            canvas.rectangle(from, (x(tenths(bar.to)) - 1, bottom), PaletteColor::Keys);
        }
        canvas.line((LEFT, bottom), (RIGHT, bottom), PaletteColor::Muted, 2);
        self.draw_marks(canvas, |cost| x(tenths(cost)), (top, bottom));
    }

    /// Draws a line for each limit, from its label downwards. Labels are stacked from left to
    /// right, so that a line crosses another label only if there is no space.
    fn draw_marks(&self, canvas: &Canvas<'_>, x: impl Fn(u64) -> i32, (top, bottom): (i32, i32)) {
        let first = top - self.marks_height() + MARK / 2 - 8;
        let rows = (0..).map(|at| first + at * MARK);
        for ((count, _), y) in self.marks.iter().zip(rows.clone()) {
            let (from, to) = ((x(*count), y - 14), (x(*count), bottom));
            canvas.line(from, to, PaletteColor::Ground, 10);
            canvas.line(from, to, PaletteColor::Bound, 4);
        }
        for ((count, label), y) in self.marks.iter().zip(rows) {
            let width = Face::LABEL.width(label);
            let left = (x(*count) + 14).min(RIGHT - width);
            canvas.rectangle((left - 6, y - 17), (left + width, y + 17), PaletteColor::Ground);
            canvas.text((left, y), label, Face::LABEL, HPos::Left);
        }
    }
}

fn tenths(cost: u64) -> u64 {
    cost.saturating_mul(10)
}

/// The ends of bars in ascending order.
fn bar_ends() -> impl Iterator<Item = u64> {
    let powers = (0..20).filter_map(|power| 10_u64.checked_pow(power));
    powers.flat_map(|power| BAR_ENDS.map(|digit| digit.saturating_mul(power)))
}

fn bar_end_from(cost: u64) -> u64 {
    bar_ends().find(|end| *end >= cost).unwrap_or(u64::MAX)
}

fn bars(keys_by_cost: &[(u64, u64)]) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for (cost, keys) in keys_by_cost {
        let to = bar_end_from(*cost);
        match bars.last_mut() {
            Some(last) if last.to == to => last.keys = last.keys.saturating_add(*keys),
            _ => {
                let above = bar_ends().take_while(|end| *end < to).last().unwrap_or(0);
                bars.push(Bar { above, to, keys: *keys });
            }
        }
    }
    bars
}

fn about(report: &Report, rows: &[Row<'_>]) -> About {
    let describe = |row: &Row<'_>| {
        let Caption { name, figures } = row.caption();
        let marks: String = row.marks.iter().map(|(_, label)| format!("; {label}")).collect();
        format!(" {name}: {figures}{marks}.")
    };
    let windows: String = rows.iter().map(describe).collect();
    About {
        id: "peaks",
        title: "Peaks of single keys".to_owned(),
        description: format!(
            "How many of {} have their highest {} within a window at which number.{windows}",
            format::counted(report.keys, "key"),
            report.unit()
        ),
    }
}

fn below(report: &Report) -> String {
    format!(
        "up: how many of {} · across: their most {} within the window",
        format::counted(report.keys, "key"),
        report.unit()
    )
}

/// Writes the costs below the panels.
fn draw_costs(canvas: &Canvas<'_>, costs: &Log, y: i32) {
    let mut free_from = LEFT - 40;
    for tick in costs.ticks(12) {
        let x = costs.position(tick, (LEFT, RIGHT));
        canvas.line((x, y), (x, y + 8), PaletteColor::Muted, 2);
        free_from = panel::draw_centred(canvas, (x, y + 26), &Counts::label(tick / 10), free_from);
    }
}

#[cfg(test)]
mod tests {
    use tollgate::Micros;

    use super::*;
    use crate::report::Outcome;

    #[test]
    fn a_mark_is_at_the_capacity_of_the_limit() {
        for (limit, expected) in [
            ("10/s fixed", "limit 10: 2 keys above"),
            ("1/s burst 20", "limit 20: 1 key above"),
            ("10/s burst 5", "limit 10: 2 keys above"),
            ("1/s queue 19", "limit 20: 1 key above"),
        ] {
            let limits = vec![limit.parse().unwrap()];
            let outcomes = vec![Outcome { limits, ..Outcome::default() }];
            let peaks = Peaks {
                window: Micros::from_secs(1),
                keys_by_cost: vec![(10, 1), (20, 1), (30, 1)],
                highest: None,
            };
            let row = Row::new(&Report { outcomes, ..Report::default() }, &peaks);
            let words: Vec<_> = row.marks.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!(words, [expected], "{limit}");
        }
    }

    #[test]
    fn each_key_is_in_one_bar_and_bars_end_at_round_numbers() {
        let bar = |(above, to, keys)| Bar { above, to, keys };
        for (keys_by_cost, expected) in [
            (vec![], vec![]),
            (vec![(1, 9)], vec![(0, 1, 9)]),
            (vec![(4, 1), (5, 2), (6, 3)], vec![(3, 5, 3), (5, 7, 3)]),
            (vec![(10, 1), (11, 2)], vec![(7, 10, 1), (10, 20, 2)]),
        ] {
            let expected: Vec<Bar> = expected.into_iter().map(bar).collect();
            assert_eq!(bars(&keys_by_cost), expected, "{keys_by_cost:?}");
        }
        assert_eq!(bars(&[(u64::MAX, 1)]).len(), 1);
    }
}
