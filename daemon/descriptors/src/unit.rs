//! Units of time.

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

/// Each unit with its name in capitals and its length in seconds.
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
    /// The unit with a name, case-insensitive.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Unit> {
        UNITS.iter().find(|(_, x, _)| x.eq_ignore_ascii_case(name)).map(|(x, ..)| *x)
    }

    /// The unit with a length.
    #[must_use]
    pub fn from_window(window: Micros) -> Option<Unit> {
        UNITS.iter().map(|(x, ..)| *x).find(|x| x.window() == window)
    }

    /// The name in capitals, as in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        UNITS.iter().find(|(x, ..)| *x == self).map_or("", |(_, name, _)| name)
    }

    /// The length of the unit.
    #[must_use]
    pub fn window(self) -> Micros {
        let seconds = UNITS.iter().find(|(x, ..)| *x == self).map_or(0, |(.., x)| *x);
        Micros::from_secs(seconds)
    }
}
