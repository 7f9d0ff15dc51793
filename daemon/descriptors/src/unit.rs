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

impl Unit {
    const ALL: [Unit; 7] =
        [Unit::Second, Unit::Minute, Unit::Hour, Unit::Day, Unit::Week, Unit::Month, Unit::Year];

    /// The name in capitals, and the length in seconds.
    const fn parts(self) -> (&'static str, u64) {
        match self {
            Unit::Second => ("SECOND", 1),
            Unit::Minute => ("MINUTE", 60),
            Unit::Hour => ("HOUR", 3_600),
            Unit::Day => ("DAY", 86_400),
            Unit::Week => ("WEEK", 7 * 86_400),
            Unit::Month => ("MONTH", 30 * 86_400),
            Unit::Year => ("YEAR", 365 * 86_400),
        }
    }

    /// The unit with a name, case-insensitive.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.name().eq_ignore_ascii_case(name))
    }

    /// The unit with a length.
    #[must_use]
    pub fn from_window(window: Micros) -> Option<Unit> {
        Unit::ALL.into_iter().find(|unit| unit.window() == window)
    }

    /// The name in capitals, as in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.parts().0
    }

    /// The length of the unit.
    #[must_use]
    pub fn window(self) -> Micros {
        Micros::from_secs(self.parts().1)
    }
}
