//! The cost admitted within a limit's window at each moment, against the bound of the limit.

use tollgate::{Kind, Limit};

use super::row::Row;
use crate::pictures::axis::{Counts, Times};
use crate::pictures::canvas::{Canvas, Point};
use crate::pictures::over_time::edges_of;
use crate::pictures::palette::PaletteColor;
use crate::pictures::panel::{LEFT, Panel, RIGHT};
use crate::pictures::rolling::{self, Moment};

/// A limit and the sums within its window.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) limit: Limit,
    /// The limit promises at most `count` within `window` µs.
    pub(super) count: u64,
    pub(super) window: u64,
    sums: Vec<(u64, u64)>,
    pub(super) most: u64,
}

impl Bound {
    /// `None` for a limit without a window.
    pub(super) fn for_limit(limit: &Limit, moments: &[Moment]) -> Option<Self> {
        if limit.is_concurrent() {
            return None;
        }
        let spec = limit.spec();
        let (count, window) = match spec.kind {
            // Its capacity, and the time to fill it: a window of one second would contain several bursts.
            Kind::TokenBucket { burst } => (burst, filled(burst, spec.window.get(), spec.count)),
            _ => (spec.count, spec.window.get()),
        };
        let sums = if is_queue(limit) {
            rolling::sums(&departures(moments, window, count), window)
        } else {
            rolling::sums(moments, window)
        };
        let most = sums.iter().map(|(_, sum)| *sum).max()?;
        Some(Bound { limit: *limit, count, window, sums, most })
    }

    /// The time of the last admission; for a queue, of the last departure.
    pub(super) fn end(&self) -> Option<u64> {
        Some(self.sums.last()?.0.saturating_sub(self.window))
    }

    /// How far the bound was approached, as a number to compare with that of another.
    pub(super) fn stretch(&self, other: &Bound) -> u128 {
        u128::from(self.most) * u128::from(other.count)
    }

    /// Draws the sums and the bound. Limits with equal windows share a scale.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        times: &Times,
        all: &[Row<'_>],
        (top, bottom): (i32, i32),
    ) {
        let alike = all.iter().filter_map(|row| row.bound.as_ref());
        let alike = alike.filter(|alike| alike.window == self.window);
        let most = alike.map(|alike| alike.most.max(alike.count)).max().unwrap_or(1);
        let panel = Panel::new(times, Counts::up_to(most), top, bottom);
        panel.draw_grid(canvas, 3);
        let outline = self.outline(&panel);
        let (_, ground) = panel.at(0, 0);
        let (_, bound) = panel.at(0, self.count);
        canvas.polygon(between(&outline, i32::MIN, ground), PaletteColor::Faint);
        if self.most > self.count {
            canvas.polygon(between(&outline, i32::MIN, bound), PaletteColor::Over);
        }
        canvas.path(outline, PaletteColor::Admitted, 4);
        canvas.line((LEFT, bound), (RIGHT, bound), PaletteColor::Bound, 3);
        let edges = edges_of(&self.limit, panel.from(), panel.to()).unwrap_or_default();
        panel.draw_edges(canvas, &edges);
    }

    /// The outline of the sums; of equal positions the highest is visible.
    fn outline(&self, panel: &Panel) -> Vec<Point> {
        let mut points = vec![panel.at(panel.from(), 0)];
        let mut level = 0;
        for (time, sum) in self.sums.iter().filter(|(time, _)| *time <= panel.to()) {
            for point in [panel.at(*time, level), panel.at(*time, *sum)] {
                push(&mut points, point);
            }
            level = *sum;
        }
        push(&mut points, panel.at(panel.to(), level));
        points
    }
}

pub(super) fn is_queue(limit: &Limit) -> bool {
    matches!(limit.spec().kind, Kind::Queue { .. })
}

/// The time in µs until this many units are refilled.
fn filled(burst: u64, window: u64, count: u64) -> u64 {
    let long = (u128::from(burst) * u128::from(window)).div_ceil(u128::from(count.max(1)));
    // A bucket that takes longer than the calendar to fill never does.
    u64::try_from(long).unwrap_or(u64::MAX)
}

/// The departures from a queue: each once all previous ones have drained.
fn departures(moments: &[Moment], window: u64, count: u64) -> Vec<Moment> {
    let (mut drained, mut leaving) = (0_u128, Vec::new());
    let scale = u128::from(count.max(1));
    for moment in moments.iter().filter(|moment| moment.admitted > 0) {
        let came = u128::from(moment.time).saturating_mul(scale);
        let leaves = drained.max(came);
        let taken = u128::from(moment.admitted).saturating_mul(u128::from(window));
        drained = leaves.saturating_add(taken);
        let time = u64::try_from(leaves.div_ceil(scale)).unwrap_or(u64::MAX);
        leaving.push(Moment { time, ..*moment });
    }
    leaving
}

/// Appends a point to a path, unless it is not visible.
fn push(points: &mut Vec<Point>, point: Point) {
    if let [.., before, last] = points.as_mut_slice() {
        let is_straight = (before.0 == last.0 && last.0 == point.0)
            && (before.1.min(point.1)..=before.1.max(point.1)).contains(&last.1);
        let is_level = before.1 == last.1 && last.1 == point.1;
        if is_straight || is_level {
            *last = point;
            return;
        }
    }
    points.push(point);
}

/// The area between an outline and a line below it.
fn between(outline: &[Point], highest: i32, line: i32) -> Vec<Point> {
    let clipped = outline.iter().map(|(x, y)| (*x, (*y).clamp(highest, line)));
    let ends = [outline.last(), outline.first()];
    clipped.chain(ends.into_iter().flatten().map(|(x, _)| (*x, line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(limit: &str, asked: &[(u64, u64)]) -> (u64, u64, u64) {
        let moment = |&(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments: Vec<_> = asked.iter().map(moment).collect();
        let bound = Bound::for_limit(&limit.parse().unwrap(), &moments).unwrap();
        (bound.most, bound.count, bound.window / 1_000_000)
    }

    #[test]
    fn each_limit_has_its_own_window_and_bound() {
        let second = 1_000_000;
        let burst = [(0, 21), (second, 1)];
        for (limit, expected) in [
            ("1/s burst 20", (22, 20, 20)),
            ("10/s burst 5", (21, 5, 0)),
            ("20/20s fixed", (22, 20, 20)),
        ] {
            assert_eq!(most(limit, &burst), expected, "{limit}");
        }
        // A queue counts departures: whatever arrives at once leaves one by one.
        let one_by_one = [(0, 1); 22];
        assert_eq!(most("1/s queue 21", &one_by_one), (1, 1, 1));
        assert_eq!(most("3/s queue 21", &one_by_one), (3, 3, 1));
    }

    #[test]
    fn waiting_requests_are_shown_until_they_depart() {
        let moments = [Moment { time: 5, admitted: 1, denied: 0 }; 4];
        let bound = Bound::for_limit(&"1/s queue 3".parse().unwrap(), &moments).unwrap();
        assert_eq!(bound.end(), Some(3_000_005));
    }
}
