//! The units of time of a limit.

use tollgate::Micros;

/// A unit of time: a month is 30 days, a year is 365.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// One second.
    Second,
    /// 60 seconds.
    Minute,
    /// 60 minutes.
    Hour,
    /// 24 hours.
    Day,
    /// 7 days.
    Week,
    /// 30 days.
    Month,
    /// 365 days.
    Year,
}

/// Each with its name in capitals and its seconds.
const UNITS: [(Unit, &str, u64); 7] = [
    (Unit::Second, "SECOND", 1),
    (Unit::Minute, "MINUTE", 60),
    (Unit::Hour, "HOUR", 3_600),
    (Unit::Day, "DAY", 86_400),
    (Unit::Week, "WEEK", 7 * 86_400),
    (Unit::Month, "MONTH", 30 * 86_400),
    (Unit::Year, "YEAR", 365 * 86_400),
];

impl Unit {
    /// The unit of this name, in capitals or not.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Unit> {
        UNITS.iter().find(|(_, x, _)| x.eq_ignore_ascii_case(name)).map(|(x, ..)| *x)
    }

    /// The unit that is this long.
    #[must_use]
    pub fn from_window(window: Micros) -> Option<Unit> {
        UNITS.iter().map(|(x, ..)| *x).find(|x| x.window() == window)
    }

    /// Its name in capitals, as the protocol has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        UNITS.iter().find(|(x, ..)| *x == self).map_or("", |(_, name, _)| name)
    }

    /// How long it is.
    #[must_use]
    pub fn window(self) -> Micros {
        let seconds = UNITS.iter().find(|(x, ..)| *x == self).map_or(0, |(.., x)| *x);
        Micros::from_secs(seconds)
    }
}
