//! A ban: a policy blocks a key for a time once it has been denied too often within a window.

use core::fmt;

use crate::algorithm::{Anomalies, MAX_CLOCK_SKEW};
use crate::notation::display::Length;
use crate::time::{Micros, Timestamp};

/// The most denials that a ban can count to.
pub(crate) const MAX_DENIALS: u64 = 1_000_000;
/// The shortest window and the shortest ban.
const MIN_SPAN: Micros = Micros::from_millis(1);

/// When a policy bans a key, and for how long.
///
/// The first counted denial opens a window, and the last of `denials` in it bans the key: for the time of
/// the ban, every check of the key is denied with the reason `banned`. A denial counts if the policy's own
/// limits deny a cost above 0 because of what is used. Denials of banned and blocked keys do not count.
///
/// # Example
/// ```
/// use std::time::Duration;
/// use tollgate_algorithms::{Ban, Policy};
/// let hour = Duration::from_secs(3_600);
/// let login = Policy::new("login", ["5/min".parse()?])?;
/// let login = login.with_ban(Ban::new(10, Duration::from_secs(600), hour)?);
/// assert_eq!(login.ban().map(|ban| ban.denials()), Some(10));
///
/// let error = Ban::new(0, Duration::from_secs(600), hour).unwrap_err();
/// assert_eq!(error.to_string(), "denials is 0; it must be 1 to 1000000; the nearest is 1");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ban {
    denials: u64,
    within: Micros,
    span: Micros,
}

impl Ban {
    /// Creates a ban of the length `span` after this many denials `within` a window.
    ///
    /// # Errors
    /// The denials are not 1 to 1,000,000, or a time is not whole milliseconds from 1 ms to 366 days.
    pub fn new(
        denials: u64,
        within: impl Into<Micros>,
        span: impl Into<Micros>,
    ) -> Result<Ban, BanError> {
        let (within, span) = (within.into(), span.into());
        if !(1..=MAX_DENIALS).contains(&denials) {
            return Err(BanError::Denials(denials));
        }
        if within != nearest_span(within) {
            return Err(BanError::Within(within));
        }
        if span != nearest_span(span) {
            return Err(BanError::Span(span));
        }
        Ok(Ban { denials, within, span })
    }

    /// The number of denials that bans a key.
    #[must_use]
    pub const fn denials(&self) -> u64 {
        self.denials
    }

    /// The window in which denials are counted.
    #[must_use]
    pub const fn within(&self) -> Micros {
        self.within
    }

    /// How long a key is banned.
    #[must_use]
    pub const fn span(&self) -> Micros {
        self.span
    }

    /// The state at `now`. A state that is too far in the future to be plausible counts as clear.
    pub(crate) fn advance_to(
        &self,
        state: BanState,
        now: Timestamp,
        anomalies: &mut Anomalies,
    ) -> BanState {
        let state = state.at(now);
        let span = match state {
            BanState::Clear => return state,
            BanState::Counting { .. } => self.within,
            BanState::Banned { .. } => self.span,
        };
        let latest = now.as_micros() + 2 * span.get() + MAX_CLOCK_SKEW;
        if state.end().is_some_and(|end| end.as_micros() > latest) {
            anomalies.implausible += 1;
            return BanState::Clear;
        }
        state
    }

    /// Counts a denial at `now` on a key with this state at that time.
    pub(crate) fn count(&self, state: BanState, now: Timestamp) -> BanState {
        let (end, denials) = match state {
            BanState::Counting { end, denials } => (end, denials + 1),
            _ => (now.saturating_add(self.within), 1),
        };
        if denials >= self.denials {
            return BanState::Banned { end: now.saturating_add(self.span) };
        }
        BanState::Counting { end, denials }
    }
}

/// Writes the ban as its settings: `10 denials within 10min, for 1h`.
impl fmt::Display for Ban {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ban { denials, within, span } = self;
        write!(f, "{denials} denials within {}, for {}", Length(*within), Length(*span))
    }
}

/// The time nearest to this one that a ban can have.
fn nearest_span(span: Micros) -> Micros {
    let rounded = Micros::from_millis(span.get().saturating_add(500) / 1_000);
    rounded.clamp(MIN_SPAN, Micros::MAX_WINDOW)
}

/// An error for numbers that are not a valid ban.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BanError {
    /// The denials are not 1 to 1,000,000.
    Denials(u64),
    /// The window is not whole milliseconds from 1 ms to 366 days.
    Within(Micros),
    /// The time of the ban is not whole milliseconds from 1 ms to 366 days.
    Span(Micros),
}

impl BanError {
    /// The name of the field in configuration files.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        match self {
            BanError::Denials(_) => "denials",
            BanError::Within(_) => "within",
            BanError::Span(_) => "for",
        }
    }
}

impl fmt::Display for BanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = self.field();
        match self {
            BanError::Denials(denials) => {
                let nearest = (*denials).clamp(1, MAX_DENIALS);
                write!(
                    f,
                    "{field} is {denials}; it must be 1 to {MAX_DENIALS}; the nearest is {nearest}"
                )
            }
            BanError::Within(span) | BanError::Span(span) => write!(
                f,
                "{field} is {}; it must be whole milliseconds from 1ms to 366d; the nearest is {}",
                Length(*span),
                Length(nearest_span(*span))
            ),
        }
    }
}

impl core::error::Error for BanError {}

/// The denials of a key that are counted, or its ban.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BanState {
    /// No denial is counted.
    #[default]
    Clear,
    /// Denials in a window.
    Counting {
        /// The end of the window, exclusive.
        end: Timestamp,
        /// The denials so far, at least 1.
        denials: u64,
    },
    /// The key is banned.
    Banned {
        /// The end of the ban, exclusive.
        end: Timestamp,
    },
}

impl BanState {
    /// The end of the window or of the ban.
    #[must_use]
    pub const fn end(&self) -> Option<Timestamp> {
        match *self {
            BanState::Clear => None,
            BanState::Counting { end, .. } | BanState::Banned { end } => Some(end),
        }
    }

    /// Whether this is a ban.
    #[must_use]
    pub const fn is_banned(&self) -> bool {
        matches!(self, BanState::Banned { .. })
    }

    /// The state at a time.
    #[must_use]
    pub fn at(self, now: Timestamp) -> BanState {
        if self.end().is_some_and(|end| now < end) { self } else { BanState::Clear }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    const SECOND: Micros = Micros::from_secs(1);

    #[test]
    fn numbers_out_of_range_are_refused_with_the_nearest_valid_one() {
        let year = Micros::new(Micros::MAX_WINDOW.get() + 1);
        for (ban, message) in [
            (
                Ban::new(0, SECOND, SECOND),
                "denials is 0; it must be 1 to 1000000; the nearest is 1",
            ),
            (
                Ban::new(u64::MAX, SECOND, SECOND),
                "denials is 18446744073709551615; it must be 1 to 1000000; the nearest is 1000000",
            ),
            (
                Ban::new(1, Micros::ZERO, SECOND),
                "within is 0s; it must be whole milliseconds from 1ms to 366d; the nearest is 1ms",
            ),
            (
                Ban::new(1, Micros::new(1_500_500), SECOND),
                "within is 1500500us; it must be whole milliseconds from 1ms to 366d; the nearest is \
                 1501ms",
            ),
            (
                Ban::new(1, SECOND, year),
                "for is 31622400000001us; it must be whole milliseconds from 1ms to 366d; the \
                 nearest is 366d",
            ),
            (
                Ban::new(1, SECOND, Micros::new(u64::MAX)),
                "for is 18446744073709551615us; it must be whole milliseconds from 1ms to 366d; the \
                 nearest is 366d",
            ),
        ] {
            assert_eq!(ban.unwrap_err().to_string(), message);
        }
        assert!(Ban::new(1, MIN_SPAN, Micros::MAX_WINDOW).is_ok());
        assert!(Ban::new(MAX_DENIALS, Micros::MAX_WINDOW, MIN_SPAN).is_ok());
    }

    #[test]
    fn the_last_denial_within_the_window_bans() {
        let ban = Ban::new(3, Micros::from_secs(10), Micros::from_secs(60)).unwrap();
        let at = |seconds: u64| Timestamp::from_micros(seconds * 1_000_000);
        let mut state = BanState::Clear;
        for (second, expected) in [
            (0, BanState::Counting { end: at(10), denials: 1 }),
            (9, BanState::Counting { end: at(10), denials: 2 }),
            (10, BanState::Counting { end: at(20), denials: 1 }),
            (10, BanState::Counting { end: at(20), denials: 2 }),
            (19, BanState::Banned { end: at(79) }),
        ] {
            state = ban.count(state.at(at(second)), at(second));
            assert_eq!(state, expected, "at {second} s");
        }
        assert_eq!(state.at(at(79)), BanState::Clear);
    }
}
