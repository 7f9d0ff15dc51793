//! Policies whose quota a process may hold for a time before it spends it.
//!
//! What is spent at one time was charged at most the hold time earlier, so all that is spent in a time `t`
//! was charged within `t + hold`. The limits are tightened: they admit in `t + hold` at most what the
//! declared limits admit in `t`. A token bucket of rate `r` gives up `r × hold` of its burst, and a sliding
//! window becomes `hold` longer. A fixed window needs nothing, if what is held ends with it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::Policy;
use crate::error::LimitError;
use crate::limit::{Kind, Limit, Spec};
use crate::notation::display::Length;
use crate::time::Micros;

/// The shortest hold time: a few round trips to the store.
const MIN_HOLD: Micros = Micros::from_millis(10);
/// The least quota that a process leases: with less, it queries the store about as often as without.
pub const MIN_LEASE: u64 = 20;
/// The longest default.
const MAX_DEFAULT_HOLD: Micros = Micros::from_secs(1);

impl Policy {
    /// The same policy for processes that charge quota in advance and spend it within `hold`, without the
    /// store. Its limits are tightened, so that all processes together never admit more than the limits
    /// did before: a token bucket gives up what refills it in the hold time, up to a quarter of its burst,
    /// and a sliding window becomes longer by the hold time, up to a quarter.
    ///
    /// The default hold time costs a tenth of a burst or a fiftieth of a window, and is at most 1 s.
    ///
    /// # Errors
    /// A limit cannot be held, or not for so long; the error names the nearest valid time.
    ///
    /// # Example
    /// ```
    /// use tollgate_core::{Micros, Policy};
    /// let api = Policy::named("api", "1000/s burst 2000; 10000/min fixed")?.leased(None)?;
    /// assert_eq!(api.hold(), Some(Micros::from_millis(200)));
    /// assert_eq!(api.to_string(), "1000/s burst 1800; 10000/min fixed");
    ///
    /// let error = Policy::named("api", "1000/s burst 9")?.leased(None).unwrap_err();
    /// assert!(error.to_string().ends_with("it needs a burst of at least 40"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn leased(self, hold: Option<Micros>) -> Result<Policy, HoldError> {
        if !self.is_named() {
            return Err(HoldError::Unnamed);
        }
        if self.ban().is_some() {
            return Err(HoldError::Ban);
        }
        if hold.is_some_and(|hold| hold < MIN_HOLD || !hold.get().is_multiple_of(1_000)) {
            return Err(HoldError::OutOfRange(hold.unwrap_or_default()));
        }
        let mut usual = MAX_DEFAULT_HOLD;
        for limit in self.limits() {
            let limit = limit.spec();
            let holds = Holds::of(limit)?;
            if holds.longest < MIN_HOLD {
                return Err(HoldError::TooSmall(*limit));
            }
            if let Some(hold) = hold.filter(|hold| *hold > holds.longest) {
                return Err(HoldError::TooLong { hold, limit: *limit, longest: holds.longest });
            }
            usual = usual.min(holds.usual);
        }
        let hold = hold.unwrap_or(usual.max(MIN_HOLD));
        let tightened = self.limits().iter().map(|limit| tightened(limit.spec(), hold).build());
        let mut limits: Vec<Limit> =
            tightened.collect::<Result<_, _>>().map_err(HoldError::Limit)?;
        limits.sort_unstable();
        Ok(self.with_hold(limits.into_boxed_slice(), hold))
    }
}

impl Policy {
    /// How long a process may hold quota that was charged, if the policy is [leased](Policy::leased).
    #[must_use]
    pub fn hold(&self) -> Option<Micros> {
        self.0.hold.as_ref().map(|hold| hold.time)
    }

    /// The limits as they were before they were tightened for a [hold time](Policy::leased).
    #[must_use]
    pub fn declared_limits(&self) -> &[Limit] {
        self.0.hold.as_ref().map_or(self.limits(), |hold| &hold.declared)
    }

    /// The quota that its limits admit in the hold time at their rate; `None` if it is not leased. If it is
    /// less than [`MIN_LEASE`], the store decides most checks.
    #[must_use]
    pub fn quota_per_hold(&self) -> Option<u64> {
        let hold = u128::from(self.hold()?.get());
        let quota = |limit: &Limit| {
            let Spec { count, window, .. } = *limit.spec();
            let quota = match limit.spec().kind {
                // All of a window may be used at once.
                Kind::Fixed { .. } | Kind::FixedFromFirst => return count,
                _ => u128::from(count) * hold / u128::from(window.get()),
            };
            u64::try_from(quota).unwrap_or(u64::MAX)
        };
        self.limits().iter().map(quota).min()
    }
}

/// The hold time of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) time: Micros,
    /// The limits before they were tightened.
    pub(super) declared: Box<[Limit]>,
}

/// How long the quota of a limit can be held.
struct Holds {
    longest: Micros,
    usual: Micros,
}

impl Holds {
    fn of(limit: &Spec) -> Result<Self, HoldError> {
        let Spec { count, window, kind, count_denied } = *limit;
        if count_denied {
            return Err(HoldError::Kind(*limit));
        }
        let millis = |us: u128| Micros::from_millis(u64::try_from(us / 1_000).unwrap_or(u64::MAX));
        Ok(match kind {
            Kind::TokenBucket { burst } => {
                let filling = u128::from(burst) * u128::from(window.get()) / u128::from(count);
                Holds { longest: millis(filling / 4), usual: millis(filling / 10) }
            }
            Kind::Fixed { .. } | Kind::FixedFromFirst => {
                let longest = millis(u128::from(window.get()) / 4);
                Holds { longest, usual: longest }
            }
            Kind::Log | Kind::Sliding | Kind::SlidingBy { .. } => {
                let window = u128::from(window.get());
                Holds { longest: millis(window / 4), usual: millis(window / 50) }
            }
            Kind::Queue { .. } | Kind::Concurrent => return Err(HoldError::Kind(*limit)),
        })
    }
}

/// The limit that admits in `t + hold` at most what this one admits in `t`.
fn tightened(limit: &Spec, hold: Micros) -> Spec {
    let mut tight = *limit;
    let longer = |by: u64| Micros::new(limit.window.get().saturating_add(by));
    match &mut tight.kind {
        Kind::TokenBucket { burst } => {
            let product = u128::from(limit.count) * u128::from(hold.get());
            let refilled = product.div_ceil(u128::from(limit.window.get()));
            *burst = burst.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX));
        }
        Kind::Log | Kind::Sliding => tight.window = longer(hold.get()),
        Kind::SlidingBy { precision, .. } => {
            tight.window = longer(hold.get().next_multiple_of(precision.get()));
        }
        _ => {}
    }
    tight
}

/// Why the quota of a policy cannot be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HoldError {
    /// The policy has no name of its own, so that others of the same text count together with it.
    Unnamed,
    /// The policy has a ban, which counts every denial.
    Ban,
    /// A queue, a concurrency limit, or one that counts denied requests.
    Kind(Spec),
    /// Even the shortest hold time would cost more than a quarter of the limit.
    TooSmall(Spec),
    /// The hold time is shorter than 10 ms, or not whole milliseconds.
    OutOfRange(Micros),
    /// The hold time would cost more than a quarter of a limit.
    TooLong {
        /// The hold time.
        hold: Micros,
        /// The limit.
        limit: Spec,
        /// The longest hold time.
        longest: Micros,
    },
    /// The tightened limit is not valid.
    Limit(LimitError),
}

impl HoldError {
    /// Whether another hold time is valid.
    #[must_use]
    pub const fn is_about_hold(&self) -> bool {
        matches!(self, HoldError::OutOfRange(_) | HoldError::TooLong { .. })
    }
}

impl fmt::Display for HoldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldError::Unnamed => f.write_str(
                "a policy without a name cannot be leased, because it counts together with others of its \
                 text; give it a name",
            ),
            HoldError::Ban => f.write_str(
                "a policy with a ban cannot be leased, because the store must count every denial",
            ),
            HoldError::Kind(limit) => {
                let reason = match limit.kind {
                    Kind::Queue { .. } => "a queue spaces its requests one by one",
                    Kind::Concurrent => "requests in flight are released one by one",
                    _ => "the store must count every denial",
                };
                write!(f, "{limit} cannot be leased, because {reason}")
            }
            HoldError::TooSmall(limit) => {
                write!(f, "{limit} is too small to be leased for {}", Length(MIN_HOLD))?;
                if let Kind::TokenBucket { .. } = limit.kind {
                    let product = u128::from(limit.count) * u128::from(4 * MIN_HOLD.get());
                    let burst = product.div_ceil(u128::from(limit.window.get()));
                    return write!(f, "; it needs a burst of at least {burst}");
                }
                write!(f, "; it needs a window of at least {}", Length(Micros::new(4 * MIN_HOLD.get())))
            }
            HoldError::OutOfRange(hold) => {
                let rounded = Micros::from_millis(hold.get().saturating_add(500) / 1_000);
                write!(
                    f,
                    "hold is {}; it must be whole milliseconds from {}; the nearest is {}",
                    Length(*hold),
                    Length(MIN_HOLD),
                    Length(rounded.max(MIN_HOLD))
                )
            }
            HoldError::TooLong { hold, limit, longest } => write!(
                f,
                "hold is {}, which costs more than a quarter of {limit}; the longest is {}",
                Length(*hold),
                Length(*longest)
            ),
            HoldError::Limit(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for HoldError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn leased(limits: &str, hold: Option<u64>) -> Result<Policy, HoldError> {
        Policy::named("api", limits).unwrap().leased(hold.map(Micros::from_millis))
    }

    #[test]
    fn limits_are_tightened_by_what_is_spent_late() {
        assert_eq!(leased("1000/s; 9/min fixed", None).unwrap().quota_per_hold(), Some(9));
        assert_eq!(leased("1000/s", Some(30)).unwrap().quota_per_hold(), Some(30));
        for (limits, hold, tight, expected) in [
            ("1000/s", None, "1000/s burst 900", 100),
            ("7/s burst 100", None, "7/s burst 93", 1_000),
            ("1000/s burst 50", None, "1000/s burst 40", 10),
            ("1000/s", Some(250), "1000/s burst 750", 250),
            ("100/min fixed", None, "100/min fixed", 1_000),
            ("100/min from-first fixed", None, "100/min fixed from-first", 1_000),
            ("100/min log", None, "100/61s log", 1_000),
            ("100/s sliding", None, "100/1020ms sliding", 20),
            ("240/h sliding by 1m", None, "240/61min sliding by 1min", 1_000),
        ] {
            let policy = leased(limits, hold).unwrap();
            assert_eq!(policy.to_string(), tight, "{limits}");
            assert_eq!(policy.hold(), Some(Micros::from_millis(expected)), "{limits}");
        }
    }

    #[test]
    fn what_cannot_be_held_is_refused_with_the_nearest_value() {
        for (limits, hold, message) in [
            (
                "1000/s burst 9",
                None,
                "1000/s burst 9 is too small to be leased for 10ms; it needs a burst of at least 40",
            ),
            (
                "5/20ms log",
                None,
                "5/20ms log is too small to be leased for 10ms; it needs a window of at least 40ms",
            ),
            (
                "5/s",
                Some(9),
                "hold is 9ms; it must be whole milliseconds from 10ms; the nearest is 10ms",
            ),
            (
                "5/s",
                Some(251),
                "hold is 251ms, which costs more than a quarter of 5/s; the longest is 250ms",
            ),
            (
                "9 concurrent lease 9s",
                None,
                "9 concurrent lease 9s cannot be leased, because requests in flight are released one by one",
            ),
            (
                "9/s queue 9",
                None,
                "9/s queue 9 cannot be leased, because a queue spaces its requests one by one",
            ),
            (
                "9/s log count-denied",
                None,
                "9/s log count-denied cannot be leased, because the store must count every denial",
            ),
        ] {
            assert_eq!(leased(limits, hold).unwrap_err().to_string(), message, "{limits}");
        }
    }
}
