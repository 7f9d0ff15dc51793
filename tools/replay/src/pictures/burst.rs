//! Compares how limits treat the same requests: the cost admitted within the window at each moment,
//! and each request.

use tollgate::Micros;

use super::axis::{Counts, Times};
use super::bound::{self, Bound, Moment};
use super::canvas::{About, Canvas, PaletteColor, draw};
use super::panel::{self, Caption, FIRST, FOOT, LEFT, LINE, RIGHT};
use crate::report::{Outcome, Report, RequestOutcome, format};

const MAX_PANELS: usize = 32;
/// The width of a bar for the requests of its time, and the gap after it.
const BAR: i32 = 4;
const GAP: i32 = 1;

/// The time shown before and after requests at a single moment.
const SINGLE_MOMENT_MARGIN: u64 = 500_000;

/// Draws how each limit treats the same requests: the sum within its window at each moment against
/// its bound, and each request. For more than one key, only the requests.
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
    let bars = all.iter().flat_map(|row| row.bars(&times));
    let most = bars.map(|(_, bar)| bar.admitted.max(bar.denied)).max().unwrap_or(1);
    draw(&about, layout.height, |canvas| {
        panel::draw_head(canvas, &about.title, &below(report, &all));
        draw_legend(canvas, &all);
        let mut top = FIRST;
        for (row, caption) in all.iter().zip(&captions) {
            caption.draw(canvas, top + LINE / 2, layout.lines);
            let plot = top + layout.lines * LINE + 20;
            let strip = plot + layout.plot(row);
            if let Some(bound) = &row.bound {
                // Limits with equal windows share a scale.
                let bounds = all.iter().filter_map(|row| row.bound.as_ref());
                let alike = bounds.filter(|other| other.window == bound.window);
                let most = alike.map(|other| other.most.max(other.count)).max().unwrap_or(1);
                bound.draw(canvas, &times, most, (plot, strip - 12));
            }
            row.draw_requests(canvas, &times, most, strip, layout.strip);
            top += layout.each(row);
        }
        panel::draw_times(canvas, &times, layout.height - FOOT);
    })
}

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
        Layout { height: FIRST + panels + FOOT, ..layout }
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
        let figures = Caption::new(report, row.outcome).figures;
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
    let mut entries =
        vec![(PaletteColor::Admitted, "admitted, up"), (PaletteColor::DeniedLine, "denied, down")];
    if rows.iter().any(|row| row.bound.is_some()) {
        entries.push((PaletteColor::Bound, "limit"));
    }
    if rows.iter().any(Row::is_over) {
        entries.push((PaletteColor::Over, "over it"));
    }
    if rows.iter().any(Row::has_edges) {
        entries.push((PaletteColor::Edge, "a window begins"));
    }
    panel::draw_legend(canvas, &entries);
}

/// The content of a panel: the decisions of one candidate.
struct Row<'a> {
    outcome: &'a Outcome,
    moments: Vec<Moment>,
    bound: Option<Bound>,
}

impl<'a> Row<'a> {
    fn new(report: &Report, outcome: &'a Outcome) -> Self {
        let moments = moments(report, outcome);
        // The sums of several keys are not comparable with a limit.
        let limits = if report.keys <= 1 { outcome.limits.as_slice() } else { &[] };
        let bounds = limits.iter().filter_map(|limit| Bound::for_limit(limit, &moments));
        // Of several limits, the one that was approached most is shown.
        let bound = bounds.max_by(|one, other| one.stretch(other).cmp(&other.stretch(one)));
        Row { outcome, moments, bound }
    }

    fn caption(&self, report: &Report) -> Caption {
        let caption = Caption::new(report, self.outcome);
        let Some(bound) = &self.bound else {
            return caption;
        };
        let window = format::window(Micros::new(bound.window));
        let most = format::grouped(bound.most);
        let times = format::ratio(bound.most, bound.count);
        let leave = if bound::is_queue(&bound.limit) { " leave" } else { "" };
        Caption {
            figures: format!("up to {most}{leave} within {window}: {times} × the limit"),
            ..caption
        }
    }

    /// The last time that is shown.
    fn end(&self) -> Option<u64> {
        let last = self.moments.last()?.time;
        Some(self.bound.as_ref().and_then(Bound::end).map_or(last, |end| end.max(last)))
    }

    /// Draws admitted requests upwards and denied ones downwards.
    fn draw_requests(&self, canvas: &Canvas<'_>, times: &Times, most: u64, top: i32, height: i32) {
        let middle = top + height / 2;
        let counts = Counts::up_to(most);
        for (x, bar) in self.bars(times) {
            // A single request remains visible beside a thousand.
            let tall = |cost| match cost {
                0 => 0,
                _ => (middle - 2 - counts.position(cost, (middle - 2, top))).max(4),
            };
            let (up, down) = (tall(bar.admitted), tall(bar.denied));
            let right = x + BAR - GAP;
            if up > 0 {
                canvas.rectangle((x, middle - 2 - up), (right, middle - 2), PaletteColor::Admitted);
            }
            if down > 0 {
                let to = (right, middle + 2 + down);
                canvas.rectangle((x, middle + 2), to, PaletteColor::DeniedLine);
            }
        }
        canvas.line((LEFT, middle), (RIGHT, middle), PaletteColor::Muted, 1);
    }

    /// The requests, summed over the width of a bar.
    fn bars(&self, times: &Times) -> Vec<(i32, Moment)> {
        let mut bars: Vec<(i32, Moment)> = Vec::new();
        for moment in &self.moments {
            let x = (times.position(moment.time, (LEFT, RIGHT)) - LEFT) / BAR * BAR + LEFT;
            match bars.last_mut() {
                Some((last, bar)) if *last == x => {
                    bar.admitted = bar.admitted.saturating_add(moment.admitted);
                    bar.denied = bar.denied.saturating_add(moment.denied);
                }
                _ => bars.push((x, *moment)),
            }
        }
        bars
    }

    /// Whether more was admitted within a window than the bound.
    fn is_over(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.most > bound.count)
    }

    /// Whether a window starts within the time of the requests.
    fn has_edges(&self) -> bool {
        let span = self.moments.first().zip(self.moments.last());
        let (Some(bound), Some((first, last))) = (&self.bound, span) else { return false };
        let edges = panel::edges(&bound.limit, first.time, last.time);
        edges.is_some_and(|edges| !edges.is_empty())
    }
}

/// Each request if the report has them, otherwise the bins of its timeline.
fn moments(report: &Report, outcome: &Outcome) -> Vec<Moment> {
    if !outcome.decisions.is_empty() {
        let moment = |&RequestOutcome { time, is_admitted, cost }: &RequestOutcome| {
            let (admitted, denied) = if is_admitted { (cost, 0) } else { (0, cost) };
            Moment { time: time.as_micros(), admitted, denied }
        };
        let mut moments: Vec<_> = outcome.decisions.iter().map(moment).collect();
        moments.sort_by_key(|moment| moment.time);
        return moments;
    }
    let mut time = report.timeline.start.as_micros();
    let admitted = outcome.admitted_over_time.iter().copied().chain(std::iter::repeat(0));
    let mut moments = Vec::new();
    for (offered, admitted) in report.timeline.costs.iter().zip(admitted) {
        if *offered > 0 {
            moments.push(Moment { time, admitted, denied: offered.saturating_sub(admitted) });
        }
        time = time.saturating_add(report.timeline.width.get());
    }
    moments
}
