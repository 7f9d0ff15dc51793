//! The words of the notation: kinds, options and units, and rejected words with their remedies.

use alloc::vec::Vec;

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

pub(super) fn keywords() -> impl Iterator<Item = &'static str> + Clone {
    KEYWORDS.iter().map(|(name, _)| *name)
}

/// The units of time in µs, with their names, the canonical one first. They are ordered from the
/// longest to the shortest, so that the first one that divides a duration is the largest.
const UNITS: [(u64, &[&str]); 6] = [
    (604_800_000_000, &["w", "week", "weeks"]),
    (86_400_000_000, &["d", "day", "days"]),
    (3_600_000_000, &["h", "hour", "hours", "hr", "hrs"]),
    (60_000_000, &["min", "m", "minute", "minutes", "mins"]),
    (1_000_000, &["s", "second", "seconds", "sec", "secs"]),
    (1_000, &["ms", "millisecond", "milliseconds", "msec", "msecs"]),
];

/// The duration of a unit in µs, by any of its names.
pub(super) fn unit(word: &str) -> Option<u64> {
    let is_word = |name: &&str| name.eq_ignore_ascii_case(word);
    UNITS.iter().find(|(_, names)| names.iter().any(is_word)).map(|(us, _)| *us)
}

pub(super) fn units() -> impl Iterator<Item = &'static str> + Clone {
    UNITS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// A duration as a multiple of the largest unit that divides it.
pub(super) fn reduced(us: u64) -> Option<(u64, &'static str)> {
    let (unit, names) = UNITS.iter().find(|(unit, _)| us.is_multiple_of(*unit))?;
    Some((us / unit, names[0]))
}

/// Common words that are not part of the notation, and what to write instead.
const REFUSED: [(&[&str], &str); 7] = [
    (&["month", "months", "mo", "mon"], "months differ in length: write 30d, or 1d windows"),
    (&["year", "years", "yr", "y"], "years differ in length: write 365d"),
    (&["us", "µs", "μs", "usec", "microsecond", "microseconds"], "the shortest unit is ms"),
    (&["ns", "nanosecond", "nanoseconds"], "the shortest unit is ms"),
    (&["per", "every", "a"], "write \"/\", as in 10/s"),
    (&["r", "req", "reqs", "request", "requests", "hits"], "leave it out, as in 10/s"),
    (&["k", "g"], "write the number out, as in 10000/s"),
];

/// What to write instead of a common word that is not part of the notation.
pub(super) fn remedy(word: &str) -> Option<&'static str> {
    let is_word = |name: &&str| name.eq_ignore_ascii_case(word);
    REFUSED.iter().find(|(names, _)| names.iter().any(is_word)).map(|(_, remedy)| *remedy)
}

/// The known word that an unknown word most likely means: one that it abbreviates, one that it
/// joins with a number, or one with a typing error.
pub(super) fn suggest(
    word: &str,
    known: impl Iterator<Item = &'static str> + Clone,
) -> Option<&'static str> {
    let word = word.to_ascii_lowercase();
    let stem = word.split(|c: char| c.is_numeric() || matches!(c, '=' | ':')).next()?;
    let is_meant = |text: &&str| *text == stem || (word.len() > 2 && text.starts_with(&word));
    known.clone().find(is_meant).or_else(|| {
        known
            .filter_map(|text| Some((distance(&word, text)?, text)))
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, text)| text)
    })
}

/// The optimal string alignment distance, or `None` if it is too large for words of this length.
fn distance(word: &str, known: &str) -> Option<usize> {
    let word: Vec<char> = word.chars().take(known.len() + 3).collect();
    let known: Vec<char> = known.chars().collect();
    let max = word.len().min(known.len()).saturating_sub(1) / 2;
    let (mut before, mut above) = (Vec::new(), Vec::from_iter(0..=known.len()));
    for (i, letter) in word.iter().enumerate() {
        let mut row = Vec::from([i + 1]);
        for (j, other) in known.iter().enumerate() {
            let changed = above[j] + usize::from(letter != other);
            let mut least = changed.min(above[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *letter == known[j - 1] && word[i - 1] == *other {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        (before, above) = (above, row);
    }
    above.last().copied().filter(|above| *above <= max.min(2))
}
