//! A panel: the decisions of one candidate.

use tollgate::Micros;

use super::bound::{self, Bound};
use crate::pictures::axis::{Counts, Times};
use crate::pictures::canvas::Canvas;
use crate::pictures::over_time::{self, edges_of};
use crate::pictures::palette::PaletteColor;
use crate::pictures::panel::{Caption, LEFT, Panel, RIGHT};
use crate::pictures::rolling::Moment;
use crate::report::{Outcome, Report, RequestOutcome, format};

/// The width of a bar for the requests of its time, and the gap after it.
const BAR: i32 = 4;
const GAP: i32 = 1;

/// The content of a panel.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) outcome: &'a Outcome,
    pub(super) moments: Vec<Moment>,
    pub(super) bound: Option<Bound>,
}

impl<'a> Row<'a> {
    pub(super) fn new(report: &Report, outcome: &'a Outcome) -> Self {
        let moments = moments(report, outcome);
        // The sums of several keys are not comparable with a limit.
        let limits = if report.keys <= 1 { outcome.limits.as_slice() } else { &[] };
        let bounds = limits.iter().filter_map(|limit| Bound::for_limit(limit, &moments));
        // Of several limits, the one that was approached most is shown.
        let bound = bounds.max_by(|one, other| one.stretch(other).cmp(&other.stretch(one)));
        Row { outcome, moments, bound }
    }

    pub(super) fn caption(&self, report: &Report) -> Caption {
        let caption = over_time::caption(report, self.outcome);
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
    pub(super) fn end(&self) -> Option<u64> {
        let last = self.moments.last()?.time;
        Some(self.bound.as_ref().and_then(Bound::end).map_or(last, |x| x.max(last)))
    }

    /// Draws admitted requests upwards and denied ones downwards.
    pub(super) fn draw_requests(
        &self,
        canvas: &Canvas<'_>,
        times: &Times,
        all: &[Row<'_>],
        top: i32,
        height: i32,
    ) {
        let bars = self.bars(times);
        let most = all.iter().flat_map(|row| row.bars(times));
        let most = most.map(|(_, x)| x.admitted.max(x.denied)).max().unwrap_or(1);
        let middle = top + height / 2;
        let plane = Panel::new(times, Counts::up_to(most), top, middle - 2);
        for (x, bar) in bars {
            // A single request remains visible beside a thousand.
            let tall =
                |cost: u64| if cost == 0 { 0 } else { (middle - 2 - plane.at(0, cost).1).max(4) };
            let (up, down) = (tall(bar.admitted), tall(bar.denied));
            let right = x + BAR - GAP;
            if up > 0 {
                canvas.rectangle((x, middle - 2 - up), (right, middle - 2), PaletteColor::Admitted);
            }
            if down > 0 {
                canvas.rectangle(
                    (x, middle + 2),
                    (right, middle + 2 + down),
                    PaletteColor::DeniedLine,
                );
            }
        }
        canvas.line((LEFT, middle), (RIGHT, middle), PaletteColor::Muted, 1);
    }

    /// The requests, summed over the width of a bar.
    fn bars(&self, times: &Times) -> Vec<(i32, Moment)> {
        let plane = Panel::new(times, Counts::up_to(1), 0, 1);
        let mut bars: Vec<(i32, Moment)> = Vec::new();
        for moment in &self.moments {
            let x = (plane.at(moment.time, 0).0 - LEFT) / BAR * BAR + LEFT;
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
    pub(super) fn is_over(&self) -> bool {
        self.bound.as_ref().is_some_and(|bound| bound.most > bound.count)
    }

    /// Whether a window starts within the time of the requests.
    pub(super) fn has_edges(&self) -> bool {
        let span = self.moments.first().zip(self.moments.last());
        let edges = self
            .bound
            .as_ref()
            .zip(span)
            .and_then(|(bound, (first, last))| edges_of(&bound.limit, first.time, last.time));
        edges.is_some_and(|edges| !edges.is_empty())
    }
}

/// Each request if the report has them, otherwise the bins of its timeline.
fn moments(report: &Report, outcome: &Outcome) -> Vec<Moment> {
    if !outcome.decisions.is_empty() {
        let moment = |decided: &RequestOutcome| {
            let (admitted, denied) =
                if decided.is_admitted { (decided.cost, 0) } else { (0, decided.cost) };
            Moment { time: decided.time.as_micros(), admitted, denied }
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
