//! The words of the notation: kinds, options, units, and those that are refused with a remedy.

/// A kind or an option. `gcra` is `token` by another name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Token,
    Fixed,
    Log,
    Sliding,
    Queue,
    Concurrent,
    Burst,
    FromFirst,
    Offset,
    By,
    Strict,
    Lease,
    CountDenied,
}

const KEYWORDS: [(&str, Keyword); 14] = [
    ("token", Keyword::Token),
    ("gcra", Keyword::Token),
    ("fixed", Keyword::Fixed),
    ("from-first", Keyword::FromFirst),
    ("offset", Keyword::Offset),
    ("log", Keyword::Log),
    ("sliding", Keyword::Sliding),
    ("by", Keyword::By),
    ("strict", Keyword::Strict),
    ("queue", Keyword::Queue),
    ("concurrent", Keyword::Concurrent),
    ("lease", Keyword::Lease),
    ("burst", Keyword::Burst),
    ("count-denied", Keyword::CountDenied),
];

/// What follows a keyword, with the remedy where it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    None,
    Count(&'static str),
    Duration(&'static str),
}

impl Keyword {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, x)| *x)
    }

    /// The word that stands for it in canonical text.
    pub(super) fn as_str(self) -> &'static str {
        KEYWORDS.iter().find(|(_, x)| *x == self).map_or("", |(name, _)| name)
    }

    /// The kind that an option belongs to: none for a kind, nor for `count-denied`, which
    /// several kinds share.
    pub(super) const fn owner(self) -> Option<Keyword> {
        match self {
            Keyword::Burst => Some(Keyword::Token),
            Keyword::FromFirst | Keyword::Offset => Some(Keyword::Fixed),
            Keyword::By | Keyword::Strict => Some(Keyword::Sliding),
            Keyword::Lease => Some(Keyword::Concurrent),
            _ => None,
        }
    }

    pub(super) const fn is_kind(self) -> bool {
        self.owner().is_none() && !matches!(self, Keyword::CountDenied)
    }

    pub(super) const fn argument(self) -> Argument {
        match self {
            Keyword::Burst => Argument::Count("write it after burst, as in burst 50"),
            Keyword::Queue => Argument::Count("write it after queue, as in queue 100"),
            Keyword::Offset => Argument::Duration("write it after offset, as in offset 5h"),
            Keyword::By => Argument::Duration("write it after by, as in sliding by 1min"),
            Keyword::Lease => Argument::Duration("write it after lease, as in lease 60s"),
            _ => Argument::None,
        }
    }
}

/// All kinds and options as they are written.
pub(super) fn keywords() -> impl Iterator<Item = &'static str> + Clone {
    KEYWORDS.iter().map(|(name, _)| *name)
}

/// A unit of time: its canonical name, its length in µs, its other names.
struct Unit(&'static str, u64, &'static [&'static str]);

/// From the longest to the shortest, so that the first to divide a length is its own.
const UNITS: [Unit; 6] = [
    Unit("w", 604_800_000_000, &["week", "weeks"]),
    Unit("d", 86_400_000_000, &["day", "days"]),
    Unit("h", 3_600_000_000, &["hour", "hours", "hr", "hrs"]),
    Unit("min", 60_000_000, &["m", "minute", "minutes", "mins"]),
    Unit("s", 1_000_000, &["second", "seconds", "sec", "secs"]),
    Unit("ms", 1_000, &["millisecond", "milliseconds", "msec", "msecs"]),
];

/// The µs of a unit by any of its names.
pub(super) fn unit(word: &str) -> Option<u64> {
    let is_word = |name: &str| name.eq_ignore_ascii_case(word);
    let unit =
        UNITS.iter().find(|unit| is_word(unit.0) || unit.2.iter().any(|name| is_word(name)))?;
    Some(unit.1)
}

/// All names of units.
pub(super) fn units() -> impl Iterator<Item = &'static str> + Clone {
    UNITS.iter().flat_map(|unit| core::iter::once(unit.0).chain(unit.2.iter().copied()))
}

/// The largest unit that divides this length, and how often.
pub(super) fn reduced(us: u64) -> Option<(u64, &'static str)> {
    let unit = UNITS.iter().find(|unit| us.is_multiple_of(unit.1))?;
    Some((us / unit.1, unit.0))
}

const MONTH: &str = "months differ in length: write 30d, or 1d windows";
const YEAR: &str = "years differ in length: write 365d";
const FINE: &str = "the shortest unit is ms";
const PER: &str = "write \"/\", as in 10/s";
const REQUESTS: &str = "leave it out, as in 10/s";
const THOUSAND: &str = "write the number out, as in 10000/s";

const REFUSED: [(&str, &str); 28] = [
    ("month", MONTH),
    ("months", MONTH),
    ("mo", MONTH),
    ("mon", MONTH),
    ("year", YEAR),
    ("years", YEAR),
    ("yr", YEAR),
    ("y", YEAR),
    ("us", FINE),
    ("µs", FINE),
    ("μs", FINE),
    ("usec", FINE),
    ("microsecond", FINE),
    ("microseconds", FINE),
    ("ns", FINE),
    ("nanosecond", FINE),
    ("nanoseconds", FINE),
    ("per", PER),
    ("every", PER),
    ("a", PER),
    ("r", REQUESTS),
    ("req", REQUESTS),
    ("reqs", REQUESTS),
    ("request", REQUESTS),
    ("requests", REQUESTS),
    ("hits", REQUESTS),
    ("k", THOUSAND),
    ("g", THOUSAND),
];

/// What to write in place of a word that people write, and that the notation does not take.
pub(super) fn remedy(word: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, x)| *x)
}
