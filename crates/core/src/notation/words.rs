//! The words of the notation: kinds, options and units, and rejected words with their remedies.

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

/// The argument of a keyword, with the remedy if it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    None,
    Count(&'static str),
    Duration(&'static str),
}

impl Keyword {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        KEYWORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
    }

    /// The word in canonical text.
    pub(super) fn as_str(self) -> &'static str {
        match KEYWORDS.iter().find(|(_, keyword)| *keyword == self) {
            Some((name, _)) => name,
            None => unreachable!("every keyword is in the table"),
        }
    }

    /// The kind that an option belongs to; `None` for a kind, and for `count-denied`, which several
    /// kinds share.
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

/// All kinds and options.
pub(super) fn keywords() -> impl Iterator<Item = &'static str> + Clone {
    KEYWORDS.iter().map(|(name, _)| *name)
}

/// A unit of time: its canonical name, its duration in µs, its other names.
struct Unit(&'static str, u64, &'static [&'static str]);

/// Ordered from the longest to the shortest, so that the first one that divides a duration is the
/// largest.
const UNITS: [Unit; 6] = [
    Unit("w", 604_800_000_000, &["week", "weeks"]),
    Unit("d", 86_400_000_000, &["day", "days"]),
    Unit("h", 3_600_000_000, &["hour", "hours", "hr", "hrs"]),
    Unit("min", 60_000_000, &["m", "minute", "minutes", "mins"]),
    Unit("s", 1_000_000, &["second", "seconds", "sec", "secs"]),
    Unit("ms", 1_000, &["millisecond", "milliseconds", "msec", "msecs"]),
];

/// The duration of a unit in µs, by any of its names.
pub(super) fn unit(word: &str) -> Option<u64> {
    let is_word = |name: &str| name.eq_ignore_ascii_case(word);
    let unit =
        UNITS.iter().find(|unit| is_word(unit.0) || unit.2.iter().any(|name| is_word(name)))?;
    Some(unit.1)
}

/// The names of all units.
pub(super) fn units() -> impl Iterator<Item = &'static str> + Clone {
    UNITS.iter().flat_map(|unit| core::iter::once(unit.0).chain(unit.2.iter().copied()))
}

/// A duration as a multiple of the largest unit that divides it.
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

/// What to write instead of a common word that is not part of the notation.
pub(super) fn remedy(word: &str) -> Option<&'static str> {
    REFUSED.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, value)| *value)
}
