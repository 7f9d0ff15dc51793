//! An axis of time in UTC.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged};

use super::count::position;
use crate::convert::index;
use crate::report::format;

const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// The first Monday after the epoch, the start of weeks.
const MONDAY: u64 = 4 * DAY;

/// The durations that divide a day, an hour or a minute evenly, and weeks.
const EVEN: &[u64] = &[
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    MILLISECOND,
    2 * MILLISECOND,
    5 * MILLISECOND,
    10 * MILLISECOND,
    20 * MILLISECOND,
    50 * MILLISECOND,
    100 * MILLISECOND,
    200 * MILLISECOND,
    500 * MILLISECOND,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
    2 * DAY,
    7 * DAY,
    14 * DAY,
];
/// Months between two labels of a long time.
const MONTHS: &[i32] = &[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200];

/// The shortest even duration that is a multiple of `width` and fits.
pub(in crate::pictures) fn even_multiple(width: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    EVEN.iter().copied().find(|even| even.is_multiple_of(width) && fits(*even))
}

/// Before the last year of the calendar. No event is that late, but the end of a bin may be.
const LATEST: u64 = 250_000_000_000_000_000;

/// The distance between labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Micros(u64),
    Months(i32),
}

/// A labelled time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pictures) struct Tick {
    /// Microseconds since the epoch.
    pub(in crate::pictures) at: u64,
    pub(in crate::pictures) label: String,
    /// The day or the year, if it differs from that of the previous label.
    pub(in crate::pictures) context: Option<String>,
}

/// The time between two microseconds since the epoch.
#[derive(Clone, Debug)]
pub(in crate::pictures) struct Times {
    from: u64,
    to: u64,
    step: Step,
}

impl Times {
    /// `fits` returns whether there is space for a number of labels of this length.
    pub(in crate::pictures) fn new(from: u64, to: u64, fits: impl Fn(usize, &str) -> bool) -> Self {
        let from = from.min(LATEST);
        let to = to.min(LATEST).max(from + 1);
        let evens = EVEN.iter().map(|even| Step::Micros(*even));
        let steps = evens.chain(MONTHS.iter().map(|months| Step::Months(*months)));
        let longest = Step::Months(MONTHS[MONTHS.len() - 1]);
        let step = steps.into_iter().find(|step| {
            let ticks = (to - from) / step.about() + 1;
            // The longest label is that of a day in the widest month.
            let sample = step.label(1_396_310_399_999_999);
            fits(usize::try_from(ticks).unwrap_or(usize::MAX), &sample)
        });
        Times { from, to, step: step.unwrap_or(longest) }
    }

    pub(in crate::pictures) fn ticks(&self) -> Vec<Tick> {
        let mut ticks: Vec<Tick> = Vec::new();
        let mut before = None;
        for at in self.moments() {
            let context = self.step.context(at);
            let is_new = before != context;
            ticks.push(Tick {
                at,
                label: self.step.label(at),
                context: context.clone().filter(|_| is_new),
            });
            before = context;
        }
        ticks
    }

    fn moments(&self) -> Vec<u64> {
        match self.step {
            Step::Micros(step) => {
                let origin = if step.is_multiple_of(7 * DAY) { MONDAY % step } else { 0 };
                let first = self.from.saturating_sub(origin).div_ceil(step);
                let times = first..=self.to.saturating_sub(origin) / step;
                times.map(|times| times * step + origin).filter(|at| *at <= self.to).collect()
            }
            Step::Months(step) => self.months(step),
        }
    }

    fn months(&self, step: i32) -> Vec<u64> {
        let month = |micros: u64| {
            format::civil(micros)
                .map_or(0, |date| i32::from(date.year()) * 12 + i32::from(date.month()) - 1)
        };
        let first = month(self.from) / step;
        let steps = first..=month(self.to) / step;
        let moments = steps.filter_map(|times| begin_of_month(times.checked_mul(step)?));
        moments.filter(|at| (self.from..=self.to).contains(at)).collect()
    }
}

/// The start of a month, counted from the start of the year 0.
fn begin_of_month(months: i32) -> Option<u64> {
    let year = i16::try_from(months.div_euclid(12)).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let begin = jiff::civil::Date::new(year, month, 1).ok()?;
    let begin =
        jiff::tz::Offset::UTC.to_timestamp(begin.to_datetime(jiff::civil::Time::midnight()));
    u64::try_from(begin.ok()?.as_microsecond()).ok()
}

impl Step {
    /// The approximate duration.
    fn about(self) -> u64 {
        match self {
            Step::Micros(step) => step,
            Step::Months(months) => u64::from(months.unsigned_abs()) * 30 * DAY,
        }
    }

    fn label(self, at: u64) -> String {
        let Some(civil) = format::civil(at) else {
            return String::new();
        };
        let format = match self {
            Step::Micros(step) if step < MINUTE => "%H:%M:%S",
            Step::Micros(step) if step < DAY => "%H:%M",
            Step::Micros(_) => "%-d %b",
            Step::Months(months) if months < 12 => "%b",
            Step::Months(_) => "%Y",
        };
        let label = civil.strftime(format).to_string();
        match self {
            Step::Micros(step) if step < MILLISECOND => format!("{label}.{:06}", at % SECOND),
            Step::Micros(step) if step < SECOND => {
                let decimals = format!("{:03}", at % SECOND / MILLISECOND);
                let kept = (1..=3).find(|kept| step.is_multiple_of(SECOND / 10_u64.pow(*kept)));
                let kept = kept.map_or(3, index);
                format!("{label}.{}", &decimals[..kept])
            }
            _ => label,
        }
    }

    /// The part of the date that the label omits.
    fn context(self, at: u64) -> Option<String> {
        let format = match self {
            Step::Micros(step) if step < DAY => "%Y-%m-%d",
            Step::Months(months) if months >= 12 => return None,
            _ => "%Y",
        };
        Some(format::civil(at)?.strftime(format).to_string())
    }
}

impl Ranged for Times {
    type FormatOption = NoDefaultFormatting;
    type ValueType = u64;

    fn map(&self, value: &u64, limit: (i32, i32)) -> i32 {
        position(*value, (self.from, self.to), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<u64> {
        self.moments()
    }

    fn range(&self) -> Range<u64> {
        self.from..self.to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from: &str, to: &str, expected: &[&str]) {
        let micros = |text: &str| {
            let timestamp: jiff::Timestamp = text.parse().unwrap();
            u64::try_from(timestamp.as_microsecond()).unwrap()
        };
        let times = Times::new(micros(from), micros(to), |ticks, label| ticks * label.len() < 48);
        let ticks = times.ticks();
        let shown = ticks.iter().map(|tick| match &tick.context {
            Some(context) => format!("{} {context}", tick.label),
            None => tick.label.clone(),
        });
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{from} to {to}");
    }

    #[test]
    fn labels_are_even_and_show_the_day_when_it_changes() {
        check(
            "2025-11-20T23:59:59Z",
            "2025-11-21T00:00:00.9Z",
            &["23:59:59.0 2025-11-20", "23:59:59.5", "00:00:00.0 2025-11-21", "00:00:00.5"],
        );
        check(
            "2025-11-20T22:10:00Z",
            "2025-11-21T01:50:00Z",
            &["22:30 2025-11-20", "23:00", "23:30", "00:00 2025-11-21", "00:30", "01:00", "01:30"],
        );
        check(
            "2025-12-15T00:00:00Z",
            "2026-01-20T00:00:00Z",
            &["15 Dec 2025", "22 Dec", "29 Dec", "5 Jan 2026", "12 Jan", "19 Jan"],
        );
        check(
            "2024-08-15T00:00:00Z",
            "2025-08-14T00:00:00Z",
            &[
                "Sep 2024", "Oct", "Nov", "Dec", "Jan 2025", "Feb", "Mar", "Apr", "May", "Jun",
                "Jul", "Aug",
            ],
        );
        check(
            "1970-01-01T00:00:00Z",
            "2239-01-01T00:00:00Z",
            &["2000", "2050", "2100", "2150", "2200"],
        );
        check(
            "2025-11-20T12:00:00.000001Z",
            "2025-11-20T12:00:00.000003Z",
            &["12:00:00.000001 2025-11-20", "12:00:00.000002", "12:00:00.000003"],
        );
    }
}
