//! The cost admitted within a limit's window at each moment, against the bound of the limit.

use tollgate::{Kind, Limit};

use super::axis::{Counts, Times};
use super::canvas::{Canvas, PaletteColor, Point};
use super::panel::{self, LEFT, Panel, RIGHT};

/// A limit and the sums within its window.
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
            // Its capacity, and the time to fill it: a window of one second would contain several
            // bursts.
            Kind::TokenBucket { burst } => (burst, filled(burst, spec.window.get(), spec.count)),
            _ => (spec.count, spec.window.get()),
        };
        let sums = if is_queue(limit) {
            sums(&departures(moments, window, count), window)
        } else {
            sums(moments, window)
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

    /// Draws the sums and the bound, on a scale up to `most`.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        times: &Times,
        most: u64,
        (top, bottom): (i32, i32),
    ) {
        let panel = Panel { times, counts: Counts::up_to(most), top, bottom };
        panel.draw_grid(canvas, 3);
        let outline = self.outline(&panel);
        let (_, ground) = panel.at(0, 0);
        let (_, bound) = panel.at(0, self.count);
        canvas.polygon(panel::area(&outline, ground), PaletteColor::Faint);
        if self.most > self.count {
            canvas.polygon(panel::area(&outline, bound), PaletteColor::Over);
        }
        canvas.path(outline, PaletteColor::Admitted, 4);
        canvas.line((LEFT, bound), (RIGHT, bound), PaletteColor::Bound, 3);
        let edges = panel::edges(&self.limit, times.from, times.to).unwrap_or_default();
        panel.draw_edges(canvas, &edges);
    }

    /// The outline of the sums; of equal positions the highest is visible.
    fn outline(&self, panel: &Panel<'_>) -> Vec<Point> {
        let mut points = vec![panel.at(panel.times.from, 0)];
        let mut level = 0;
        for (time, sum) in self.sums.iter().filter(|(time, _)| *time <= panel.times.to) {
            for point in [panel.at(*time, level), panel.at(*time, *sum)] {
                push(&mut points, point);
            }
            level = *sum;
        }
        push(&mut points, panel.at(panel.times.to, level));
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

/// The requests of a moment, or of a bin.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    /// Microseconds since the epoch.
    pub(super) time: u64,
    pub(super) admitted: u64,
    pub(super) denied: u64,
}

/// The admitted cost in `(t - window, t]` for each `t` at which it changes.
fn sums(moments: &[Moment], window: u64) -> Vec<(u64, u64)> {
    let mut sums = Vec::with_capacity(moments.len() * 2);
    let mut sum = 0_u64;
    let mut leaving = moments.iter().peekable();
    for entering in moments {
        // Leave before the next request, or at its time.
        while let Some(next) = leaving.next_if(|leaving| leaves(leaving, window) <= entering.time) {
            sum = sum.saturating_sub(next.admitted);
            put(&mut sums, leaves(next, window), sum);
        }
        sum = sum.saturating_add(entering.admitted);
        put(&mut sums, entering.time, sum);
    }
    for next in leaving {
        sum = sum.saturating_sub(next.admitted);
        put(&mut sums, leaves(next, window), sum);
    }
    sums
}

/// Only the last value at a moment is kept.
fn put(sums: &mut Vec<(u64, u64)>, time: u64, sum: u64) {
    match sums.last_mut() {
        Some(last) if last.0 == time => last.1 = sum,
        _ => sums.push((time, sum)),
    }
}

fn leaves(moment: &Moment, window: u64) -> u64 {
    moment.time.saturating_add(window)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn most(limit: &str, requests: &[(u64, u64)]) -> (u64, u64, u64) {
        let moment = |&(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments: Vec<_> = requests.iter().map(moment).collect();
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

    #[test]
    fn a_request_leaves_after_one_window() {
        let moment = |(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments = [(0, 2), (4, 1), (10, 3), (13, 0)].map(moment);
        let expected = [(0, 2), (4, 3), (10, 4), (13, 4), (14, 3), (20, 0), (23, 0)];
        assert_eq!(sums(&moments, 10), expected);
        assert_eq!(sums(&[], 10), []);
    }

    #[test]
    fn a_fixed_window_admits_twice_its_count_across_an_edge() {
        let moment = |(time, admitted)| Moment { time, admitted, denied: 0 };
        let moments = [(59, 100), (60, 100)].map(moment);
        assert_eq!(sums(&moments, 60).into_iter().map(|(_, sum)| sum).max(), Some(200));
    }
}
