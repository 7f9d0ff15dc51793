//! Saying what happens often only now and then.

use std::sync::{Mutex, PoisonError};

use tollgate::{Micros, Timestamp};

/// How often a line is logged: whoever brings it about must not fill the disk.
const SAY_EVERY: Micros = Micros::from_secs(10);

/// How often something has happened that the log tells now and then.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    all: u64,
    /// How many of them no line has told.
    untold: u64,
    /// When the next line may be.
    next: Timestamp,
}

impl Seldom {
    /// Counts one, at `now`; if it is time for a line, how many that stands for, and how many there
    /// have been in all.
    pub(crate) fn count(&self, now: Timestamp) -> Option<(u64, u64)> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all = counts.all.saturating_add(1);
        counts.untold = counts.untold.saturating_add(1);
        if now < counts.next {
            return None;
        }
        counts.next = now.saturating_add(SAY_EVERY);
        Some((std::mem::take(&mut counts.untold), counts.all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stands_for_all_since_the_last() {
        let seldom = Seldom::default();
        let at = |seconds: u64| seldom.count(Timestamp::from_micros(seconds * 1_000_000));
        assert_eq!(at(100), Some((1, 1)));
        assert_eq!([at(100), at(105), at(109)], [None; 3]);
        assert_eq!(at(110), Some((4, 5)));
        assert_eq!(at(111), None);
    }
}
