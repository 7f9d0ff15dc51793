//! How requests lie in time.

use std::fmt;
use std::str::FromStr;

use super::words::TrafficError;

/// How requests lie in time, and whose they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shape {
    /// Evenly spaced; the keys take turns.
    Steady,
    /// At random times, as many clients make them that know nothing of each other; keys at random.
    Poisson,
    /// All of a window at once, at its beginning; the keys take turns.
    Bursts,
    /// At random times; the k-th key asks 1/k as often as the first.
    Zipf,
    /// A wave of random times, nine tenths of the average up and down: least at the start, most half a day
    /// later. Shorter than a day, it is one whole wave. Keys at random.
    Diurnal,
    /// Nothing but a flood across each second edge of a window of the clock, half before it and half
    /// after, each in a tenth of the window, and each as much as the rate gives in a window. Who counts by
    /// fixed windows admits twice his limit there. The keys take turns.
    Stampede,
}

use Shape::{Bursts, Diurnal, Poisson, Stampede, Steady, Zipf};

const NAMES: [(Shape, &str); 6] = [
    (Steady, "steady"),
    (Poisson, "poisson"),
    (Bursts, "bursts"),
    (Zipf, "zipf"),
    (Diurnal, "diurnal"),
    (Stampede, "stampede"),
];

impl Shape {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Shape> {
        NAMES.iter().map(|name| name.0)
    }

    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(x, _)| *x == self).map_or("", |(_, name)| name)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Shape {
    type Err = TrafficError;

    fn from_str(text: &str) -> Result<Self, TrafficError> {
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(shape, _)| *shape).ok_or_else(|| TrafficError::Shape(text.to_owned()))
    }
}
