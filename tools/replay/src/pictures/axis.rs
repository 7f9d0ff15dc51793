//! The axes: positions of values, and labels.

use crate::convert::{index, to_u64};
use crate::report::format::{self, DAY, HOUR, MILLISECOND, MINUTE, MONDAY, SECOND, WEEK};

/// The position of a value between two ends, in units of the picture.
#[expect(clippy::expect_used, reason = "the position lies between the two ends")]
fn position(value: u64, (from, to): (u64, u64), ends: (i32, i32)) -> i32 {
    let length = i128::from(to.saturating_sub(from)).max(1);
    let along = i128::from(value.clamp(from, to.max(from)) - from);
    let run = i128::from(ends.1) - i128::from(ends.0);
    let moved = (along * run * 2 + length * run.signum()) / (length * 2);
    i32::try_from(i128::from(ends.0) + moved).expect("a position between two i32")
}

/// Counts from 0 to slightly above the maximum.
pub(super) struct Counts {
    top: u64,
}

impl Counts {
    pub(super) fn up_to(greatest: u64) -> Self {
        Counts { top: greatest.saturating_add(greatest / 16).max(1) }
    }

    /// The position of a count between two ends, in units of the picture.
    pub(super) fn position(&self, count: u64, ends: (i32, i32)) -> i32 {
        position(count, (0, self.top), ends)
    }

    /// Round numbers, at most `max` above 0.
    pub(super) fn ticks(&self, max: usize) -> Vec<u64> {
        let max = to_u64(max.max(1));
        let steps = (0..20)
            .flat_map(|power| [1, 2, 5].map(|digit: u64| digit.saturating_mul(10_u64.pow(power))));
        let step = steps.into_iter().find(|step| self.top / step <= max).unwrap_or(u64::MAX);
        (0..=self.top / step).map(|times| times * step).collect()
    }

    /// A short form of a number: `1,500`, `20k`, `1.5M`.
    pub(super) fn label(number: u64) -> String {
        const UNITS: [(u64, &str); 6] = [
            (1_000_000_000_000_000_000, "E"),
            (1_000_000_000_000_000, "P"),
            (1_000_000_000_000, "T"),
            (1_000_000_000, "G"),
            (1_000_000, "M"),
            (1_000, "k"),
        ];
        if number < 10_000 {
            return format::grouped(number);
        }
        let unit = UNITS.iter().find(|(unit, _)| number >= *unit);
        let Some((unit, word)) = unit else {
            return number.to_string();
        };
        match number % unit / (unit / 10) {
            0 => format!("{}{word}", number / unit),
            tenths => format!("{}.{tenths}{word}", number / unit),
        }
    }
}

/// Counts in tenths, which leaves space below 1.
pub(super) struct Log {
    from: u64,
    to: u64,
}

impl Log {
    /// An axis between two numbers of tenths above 0.
    pub(super) fn new(from: u64, to: u64) -> Self {
        let from = from.max(1);
        Log { from, to: to.max(from.saturating_add(1)) }
    }

    /// The powers of ten in tenths and, if there is space, their doubles and fives.
    pub(super) fn ticks(&self, most: usize) -> Vec<u64> {
        let within = |digits: &[u64]| -> Vec<u64> {
            (1..20)
                .flat_map(|power| digits.iter().map(move |digit| (*digit, power)))
                .filter_map(|(digit, power)| digit.checked_mul(10_u64.checked_pow(power)?))
                .filter(|tick| (self.from..=self.to).contains(tick))
                .collect()
        };
        let all = [within(&[1, 2, 5]), within(&[1, 3]), within(&[1])];
        let [.., powers] = &all;
        let fitting = all.iter().find(|ticks| ticks.len() <= most);
        let stride = powers.len().div_ceil(most.max(1)).max(1);
        fitting.cloned().unwrap_or_else(|| powers.iter().copied().step_by(stride).collect())
    }

    /// The position of a number between two ends, in units of the picture.
    #[expect(clippy::float_arithmetic, reason = "a position in a picture; it decides nothing")]
    #[expect(clippy::as_conversions, reason = "rounded to whole units; beyond i32 it saturates")]
    pub(super) fn position(&self, value: u64, ends: (i32, i32)) -> i32 {
        let ln = |n: u64| (n as f64).ln();
        let (from, to) = (ln(self.from), ln(self.to));
        let along = (ln(value.clamp(self.from, self.to)) - from) / (to - from);
        let run = f64::from(ends.1) - f64::from(ends.0);
        (f64::from(ends.0) + along * run).round() as i32
    }
}

/// The durations that divide a day, an hour or a minute evenly, and weeks: multiples of their unit.
const EVEN: [(u64, &[u64]); 6] = [
    (1, &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    (MILLISECOND, &[1, 2, 5, 10, 20, 50, 100, 200, 500]),
    (SECOND, &[1, 2, 5, 10, 15, 30]),
    (MINUTE, &[1, 2, 5, 10, 15, 30]),
    (HOUR, &[1, 2, 3, 6, 12]),
    (DAY, &[1, 2, 7, 14]),
];
/// Months between two labels of a long time.
const MONTHS: &[i32] = &[1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1_200];

fn evens() -> impl Iterator<Item = u64> {
    EVEN.into_iter().flat_map(|(unit, counts)| counts.iter().map(move |count| count * unit))
}

/// The shortest even duration that is a multiple of `width` and fits.
pub(super) fn even_multiple(width: u64, fits: impl Fn(u64) -> bool) -> Option<u64> {
    evens().find(|even| even.is_multiple_of(width) && fits(*even))
}

/// Before the last year of the calendar. No event is that late, but the end of a bin may be.
const LATEST: u64 = 250_000_000_000_000_000;

#[derive(Clone, Copy)]
enum Step {
    Micros(u64),
    Months(i32),
}

pub(super) struct Tick {
    /// Microseconds since the epoch.
    pub(super) at: u64,
    pub(super) label: String,
    /// The day or the year, if it differs from that of the previous label.
    pub(super) context: Option<String>,
}

/// The time between two microseconds since the epoch.
pub(super) struct Times {
    pub(super) from: u64,
    pub(super) to: u64,
    step: Step,
}

impl Times {
    /// `fits` returns whether there is space for a number of labels of this length.
    pub(super) fn new(from: u64, to: u64, fits: impl Fn(usize, &str) -> bool) -> Self {
        let from = from.min(LATEST);
        let to = to.min(LATEST).max(from + 1);
        let longest = Step::Months(MONTHS[MONTHS.len() - 1]);
        let months = MONTHS.iter().map(|months| Step::Months(*months));
        let step = evens().map(Step::Micros).chain(months).find(|step| {
            let ticks = (to - from) / step.about() + 1;
            // The longest label is that of a day in the widest month.
            let sample = step.label(1_396_310_399_999_999);
            fits(usize::try_from(ticks).unwrap_or(usize::MAX), &sample)
        });
        Times { from, to, step: step.unwrap_or(longest) }
    }

    /// The position of a time between two ends, in units of the picture.
    pub(super) fn position(&self, time: u64, ends: (i32, i32)) -> i32 {
        position(time, (self.from, self.to), ends)
    }

    pub(super) fn ticks(&self) -> Vec<Tick> {
        let mut before = None;
        let tick = |at| {
            let context = self.step.context(at);
            let is_new = before != context;
            before.clone_from(&context);
            Tick { at, label: self.step.label(at), context: context.filter(|_| is_new) }
        };
        self.moments().into_iter().map(tick).collect()
    }

    fn moments(&self) -> Vec<u64> {
        match self.step {
            Step::Micros(step) => {
                let origin = if step.is_multiple_of(WEEK) { MONDAY % step } else { 0 };
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
                let count = (1..=3).find(|count| step.is_multiple_of(SECOND / 10_u64.pow(*count)));
                format!("{label}.{}", &decimals[..count.map_or(3, index)])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (greatest, expected) in [
            (0, vec![0, 1]),
            (1, vec![0, 1]),
            (7, vec![0, 2, 4, 6]),
            (100, vec![0, 50, 100]),
            (950, vec![0, 500, 1_000]),
            (
                u64::MAX,
                vec![
                    0,
                    5_000_000_000_000_000_000,
                    10_000_000_000_000_000_000,
                    15_000_000_000_000_000_000,
                ],
            ),
        ] {
            assert_eq!(Counts::up_to(greatest).ticks(3), expected, "{greatest}");
        }
    }

    #[test]
    fn labels_are_short() {
        for (number, expected) in [
            (0, "0"),
            (9_999, "9,999"),
            (20_000, "20k"),
            (1_500_000, "1.5M"),
            (15_000_000_000_000_000_000, "15E"),
        ] {
            assert_eq!(Counts::label(number), expected);
        }
    }

    #[test]
    fn equal_ratios_are_equally_far_apart() {
        let log = Log::new(10, 10_000);
        assert_eq!([10, 100, 1_000, 10_000].map(|n| log.position(n, (0, 300))), [0, 100, 200, 300]);
        assert_eq!([0, u64::MAX].map(|n| log.position(n, (300, 0))), [300, 0]);
        let narrow = Log::new(u64::MAX, u64::MAX);
        assert!((0..=300).contains(&narrow.position(u64::MAX, (0, 300))));
    }

    #[test]
    fn ticks_are_powers_of_ten_with_as_many_multiples_as_fit() {
        for (to, most, expected) in [
            (100, 8, vec![10, 20, 50, 100]),
            (10_000, 7, vec![10, 30, 100, 300, 1_000, 3_000, 10_000]),
            (10_000, 4, vec![10, 100, 1_000, 10_000]),
            (10_000, 2, vec![10, 1_000]),
        ] {
            assert_eq!(Log::new(7, to).ticks(most), expected);
        }
    }

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
