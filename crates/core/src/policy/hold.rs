//! Policies whose quota a process may hold for a time before it spends it.
//!
//! Quota is charged at most the hold time before it is spent, so all that is spent in a time `t` was charged
//! within `t + hold`. The limits are lowered: they admit in `t + hold` at most what the declared limits
//! admit in `t`. A token bucket of rate `r` gives up `r × hold` of its burst; the window of a log becomes
//! `hold` longer; a weighted sliding window, which admits its count at once and then at a rate, gives up
//! what that rate admits in the hold time. A fixed window needs nothing, if what is held ends with it.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::Policy;
use crate::decision::Decision;
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
    /// store. Its limits are lowered, at most by a quarter, so that all processes together never admit more
    /// than the limits did before.
    ///
    /// The default hold time costs a tenth of a burst or a fiftieth of a window, and is at most 1 s.
    ///
    /// # Errors
    /// A limit cannot be held, or not for so long; the error names the nearest valid time.
    ///
    /// # Example
    /// ```
    /// use tollgate_algorithms::{Micros, Policy};
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
        let declared = self.declared_limits();
        let mut default = MAX_DEFAULT_HOLD;
        for limit in declared {
            let limit = limit.spec();
            let times = HoldTimes::new(limit)?;
            if times.longest < MIN_HOLD {
                return Err(HoldError::TooSmall(*limit));
            }
            if let Some(hold) = hold.filter(|hold| *hold > times.longest) {
                return Err(HoldError::TooLong { hold, limit: *limit, longest: times.longest });
            }
            default = default.min(times.default);
        }
        let hold = hold.unwrap_or(default.max(MIN_HOLD));
        let mut limits = Vec::with_capacity(declared.len());
        for limit in declared {
            let lowered = lowered(limit.spec(), hold).build();
            limits.push(lowered.map_err(|error| HoldError::Limit(*limit.spec(), error))?);
        }
        limits.sort_unstable();
        let hold = Hold { time: hold, declared: declared.into() };
        Ok(self.with(|parts| (parts.limits, parts.hold) = (limits.into(), Some(hold))))
    }
}

impl Policy {
    /// How long a process may hold quota that was charged, if the policy is [leased](Policy::leased).
    #[must_use]
    pub fn hold(&self) -> Option<Micros> {
        self.0.hold.as_ref().map(|hold| hold.time)
    }

    /// The limits as they were before they were lowered for a [hold time](Policy::leased).
    #[must_use]
    pub fn declared_limits(&self) -> &[Limit] {
        self.0.hold.as_ref().map_or(self.limits(), |hold| &hold.declared)
    }

    /// How long the first of its fixed windows lasts in which a decision of this policy was made; `None` if
    /// none of them has been charged. Quota is not spent after the window that it was charged to.
    #[must_use]
    pub fn rest_of_window(&self, decision: &Decision) -> Option<Micros> {
        let limits = self.limits().iter().zip(decision.each_limit());
        let windows = limits.filter(|(limit, _)| is_fixed(limit));
        // An unused window may begin later.
        let rests = windows.map(|(_, state)| state.reset_after);
        rests.filter(|rest| *rest > Micros::ZERO).min()
    }

    /// Whether all of its limits are fixed windows: quota that is not spent can be refunded exactly.
    #[must_use]
    pub fn has_only_fixed_windows(&self) -> bool {
        self.limits().iter().all(is_fixed)
    }

    /// The quota that its limits admit in the hold time at their rate; `None` if it is not leased. If it is
    /// less than [`MIN_LEASE`], the store decides most checks.
    #[must_use]
    pub fn quota_per_hold(&self) -> Option<u64> {
        let hold = u128::from(self.hold()?.get());
        let quota = |limit: &Limit| {
            let Spec { count, window, .. } = *limit.spec();
            if is_fixed(limit) {
                // All of a window may be used at once.
                return count;
            }
            u64::try_from(u128::from(count) * hold / u128::from(window.get())).unwrap_or(u64::MAX)
        };
        self.limits().iter().map(quota).min()
    }
}

fn is_fixed(limit: &Limit) -> bool {
    matches!(limit.spec().kind, Kind::Fixed { .. } | Kind::FixedFromFirst)
}

/// The hold time of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) time: Micros,
    /// The limits before they were lowered.
    pub(super) declared: Box<[Limit]>,
}

/// How long the quota of a limit can be held: the longest time costs a quarter of it.
struct HoldTimes {
    longest: Micros,
    default: Micros,
}

impl HoldTimes {
    fn new(limit: &Spec) -> Result<Self, HoldError> {
        let Spec { count, window, kind, count_denied } = *limit;
        if count_denied {
            return Err(HoldError::Kind(*limit));
        }
        let millis = |us: u128| Micros::from_millis(u64::try_from(us / 1_000).unwrap_or(u64::MAX));
        let filling =
            |tokens: u64| u128::from(tokens) * u128::from(window.get()) / u128::from(count);
        let part = |parts: u64| millis(u128::from(window.get() / parts));
        let (longest, default) = match kind {
            Kind::TokenBucket { burst } => {
                (millis(filling(burst / 4)), millis(filling(burst) / 10))
            }
            Kind::Fixed { .. } | Kind::FixedFromFirst => (part(4), part(4)),
            Kind::Log | Kind::Sliding => (part(4), part(50)),
            Kind::SlidingBy { precision, .. } => {
                // The window becomes longer by whole buckets.
                let whole = |parts| window.get() / parts / precision.get() * precision.get();
                (millis(whole(4).into()), millis(whole(50).max(precision.get()).into()))
            }
            Kind::Queue { .. } | Kind::Concurrent => return Err(HoldError::Kind(*limit)),
        };
        Ok(HoldTimes { longest, default: default.min(longest) })
    }
}

/// The limit that admits in `t + hold` at most what this one admits in `t`.
fn lowered(limit: &Spec, hold: Micros) -> Spec {
    let mut lowered = *limit;
    let (window, hold) = (limit.window.get(), hold.get());
    match &mut lowered.kind {
        Kind::TokenBucket { burst } => {
            let product = u128::from(limit.count) * u128::from(hold);
            let refilled = product.div_ceil(u128::from(window));
            *burst = burst.saturating_sub(u64::try_from(refilled).unwrap_or(u64::MAX));
        }
        // It admits up to the count at once, and then at that rate.
        Kind::Sliding => {
            let length = u128::from(window) + u128::from(hold);
            let count = u128::from(limit.count) * u128::from(window) / length;
            lowered.count = u64::try_from(count).unwrap_or(u64::MAX);
        }
        Kind::Log => lowered.window = Micros::new(window + hold),
        Kind::SlidingBy { precision, .. } => {
            lowered.window = Micros::new(window + hold.next_multiple_of(precision.get()));
        }
        _ => {}
    }
    lowered
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
    /// The limit is not valid when it is lowered.
    Limit(Spec, LimitError),
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
                "a policy without a name cannot be leased, because it shares its state with every policy \
                 of the same text; give it a name",
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
                    let product = u128::from(limit.count) * u128::from(MIN_HOLD.get());
                    let burst = 4 * product.div_ceil(u128::from(limit.window.get()));
                    return write!(f, "; it needs a burst of at least {burst}");
                }
                let precision = match limit.kind {
                    Kind::SlidingBy { precision, .. } => precision.get(),
                    _ => 1,
                };
                let window = 4 * MIN_HOLD.get().next_multiple_of(precision);
                write!(f, "; it needs a window of at least {}", Length(Micros::new(window)))
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
            HoldError::Limit(limit, error) => {
                write!(f, "{limit} cannot be leased: when it is lowered, {error}")
            }
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
    fn limits_are_lowered_by_what_is_spent_late() {
        let again = leased("1000/s", Some(20)).unwrap().leased(None).unwrap();
        assert_eq!(again, leased("1000/s", None).unwrap());
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
            ("100/s sliding", None, "98/s sliding", 20),
            ("100/min sliding", Some(15_000), "80/min sliding", 15_000),
            ("1/s burst 4", None, "1/s burst 3", 400),
            ("240/h sliding by 1m", None, "240/61min sliding by 1min", 1_000),
        ] {
            let policy = leased(limits, hold).unwrap();
            assert_eq!(policy.to_string(), tight, "{limits}");
            assert_eq!(policy.hold(), Some(Micros::from_millis(expected)), "{limits}");
        }
    }

    #[test]
    fn invalid_limits_and_times_are_refused_with_the_nearest_value() {
        for (limits, hold, message) in [
            (
                "1000/s burst 9",
                None,
                "1000/s burst 9 is too small to be leased for 10ms; it needs a burst of at least 40",
            ),
            ("1/s", None, "1/s is too small to be leased for 10ms; it needs a burst of at least 4"),
            (
                "9/min sliding by 20s",
                None,
                "9/min sliding by 20s is too small to be leased for 10ms; it needs a window of at least 80s",
            ),
            (
                "9/366d log",
                None,
                "9/366d log cannot be leased: when it is lowered, the window is 31622401s; windows and leases \
                 are whole milliseconds from 1ms to 366d",
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
                "8/s",
                Some(251),
                "hold is 251ms, which costs more than a quarter of 8/s; the longest is 250ms",
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
