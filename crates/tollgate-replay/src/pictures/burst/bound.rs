//! What came to pass within a limit's window at each moment, against its count.

use tollgate::Limit;

use super::row::Row;
use crate::pictures::axis::{Counts, Times};
use crate::pictures::canvas::{Canvas, Point};
use crate::pictures::ink::Ink;
use crate::pictures::over_time::edges_of;
use crate::pictures::panel::{LEFT, Panel, RIGHT};
use crate::pictures::rolling::{self, Moment};

/// A limit, and what came to pass within its window.
#[derive(Debug)]
pub(super) struct Bound {
    pub(super) limit: Limit,
    sums: Vec<(u64, u64)>,
    pub(super) most: u64,
}

impl Bound {
    /// Nothing for a limit that has no window.
    pub(super) fn of(limit: &Limit, moments: &[Moment]) -> Option<Self> {
        if limit.is_concurrent() {
            return None;
        }
        let sums = rolling::sums(moments, limit.spec().window.get());
        let most = sums.iter().map(|(_, sum)| *sum).max()?;
        Some(Bound { limit: *limit, sums, most })
    }

    /// How far it was stretched, as a number to compare with the other's.
    pub(super) fn stretch(&self, other: &Bound) -> u128 {
        u128::from(self.most) * u128::from(other.limit.spec().count)
    }

    /// Draws the sums and the count over each other. Limits of one window share their heights.
    pub(super) fn draw(
        &self,
        canvas: &Canvas<'_>,
        times: &Times,
        all: &[Row<'_>],
        (top, bottom): (i32, i32),
    ) {
        let spec = self.limit.spec();
        let alike = all.iter().filter_map(|row| row.bound.as_ref());
        let alike = alike.filter(|it| it.limit.spec().window == spec.window);
        let most = alike.map(|it| it.most.max(it.limit.spec().count)).max().unwrap_or(1);
        let panel = Panel::new(times, Counts::up_to(most), top, bottom);
        panel.draw_grid(canvas, 3);
        let outline = self.outline(&panel);
        let (_, ground) = panel.at(0, 0);
        let (_, bound) = panel.at(0, spec.count);
        canvas.polygon(between(&outline, i32::MIN, ground), Ink::Faint);
        if self.most > spec.count {
            canvas.polygon(between(&outline, i32::MIN, bound), Ink::Over);
        }
        canvas.path(outline, Ink::Admitted, 4);
        canvas.line((LEFT, bound), (RIGHT, bound), Ink::Bound, 3);
        let edges = edges_of(&self.limit, panel.from(), panel.to()).unwrap_or_default();
        panel.draw_edges(canvas, &edges);
    }

    /// The sums over time: of those that fall on one place the highest shows.
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

/// Adds a point to a path, unless it adds nothing to what can be seen.
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

/// The area between an outline and a line below it, of what is above that line.
fn between(outline: &[Point], highest: i32, line: i32) -> Vec<Point> {
    let clipped = outline.iter().map(|(x, y)| (*x, (*y).clamp(highest, line)));
    let ends = [outline.last(), outline.first()];
    clipped.chain(ends.into_iter().flatten().map(|(x, _)| (*x, line))).collect()
}
