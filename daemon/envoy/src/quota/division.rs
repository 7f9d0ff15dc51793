//! How the limit of a key is divided among clients.
//!
//! A client with a token bucket of `m` tokens and `r` tokens per second admits at most `m + r·t`
//! requests in a time `t`. The limit admits `B + R·t`, so it is kept if the tokens that all clients
//! can hold at once, those that come into being later, and their rates are within it:
//!
//! - The rate is divided into units. A client holds a lease of each unit that it may use, and the
//!   lease lasts longer than its assignment. All units together refill 49/50 of `R`.
//! - A unit comes with its share of `3/4·B` tokens.
//! - Tokens that come into being, because a client begins, begins again or gets more, are taken from
//!   a token bucket with a capacity of `B/4` and the other 1/50 of `R`.

use tollgate::{Kind, Limit, Micros, Policy, Spec};

/// How long a lease of units lasts: the life of an assignment, the slack of its delivery, and the
/// time to prepare it.
pub(super) const LEASE: Micros = Micros::new(TTL.get() + SLACK.get() + MAX_PREPARATION.get());
/// How long an assignment lasts at the client. Envoy counts whole seconds.
pub(super) const TTL: Micros = Micros::from_secs(10);
/// The longest delay of a message between the daemon and the client.
pub(super) const SLACK: Micros = Micros::from_secs(2);
/// The longest time between the renewal of leases and the message that depends on them.
pub(super) const MAX_PREPARATION: Micros = Micros::from_secs(1);

/// The demand of a client that needs the whole limit.
pub(super) const FULL_DEMAND: u64 = 2_500;
/// The greatest demand of a client.
pub(super) const MAX_DEMAND: u64 = 2 * FULL_DEMAND;
/// The sum of demands is stored as two digits, because a concurrency limit holds at most 10,000.
const DIGIT: u64 = 50;
/// The most that a concurrency limit holds.
const MAX_HELD: u64 = 10_000;

/// The fill intervals, in seconds: the first one with enough units applies.
const FILLS: [u64; 7] = [1, 2, 5, 10, 20, 50, 100];
/// This many units are enough.
const ENOUGH_UNITS: u64 = 100;
/// Fewer units cannot be divided.
const MIN_UNITS: u64 = 20;
/// The most units.
const MAX_UNITS: u64 = 5_000;
/// A smaller burst cannot be divided.
const MIN_BURST: u64 = 6;

/// The division of a limit.
#[derive(Clone, Debug)]
pub(super) struct Division {
    /// The policy whose limit it is.
    pub(super) policy: Policy,
    /// The leases of units.
    pub(super) rates: Policy,
    /// The leases of demands, by digit, the lower one first.
    pub(super) demands: [Policy; 2],
    /// The tokens that come into being.
    pub(super) starts: Policy,
    /// The number of units.
    pub(super) units: u64,
    /// The tokens that a unit refills in each fill interval.
    tokens_per_fill: u64,
    /// The fill interval, in seconds.
    pub(super) fill: u64,
    /// The tokens of all clients together.
    burst: u64,
}

/// Why a limit cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Indivisible {
    /// There are several limits.
    Several,
    /// The limit is a queue or a concurrency limit.
    Kind,
    /// The limit counts denied requests.
    CountsDenied,
    /// The policy bans keys.
    Ban,
    /// The rate is too small.
    Small,
    /// The burst is too small.
    Burst,
    /// A number does not fit into a token bucket of Envoy.
    Large,
    /// The policy's name is too long.
    Name,
}

impl Indivisible {
    /// The reason and the remedy.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Indivisible::Several => "it has several limits; a quota needs a policy with one",
            Indivisible::Kind => {
                "it is a queue or a concurrency limit; a quota needs a token bucket or a window"
            }
            Indivisible::CountsDenied => "it counts denied requests; remove count-denied",
            Indivisible::Ban => "its policy bans keys; remove the ban",
            Indivisible::Small => {
                "fewer than 20 requests in 100 s are too few to divide; use ShouldRateLimit"
            }
            Indivisible::Burst => {
                "a burst below 6, or a window of fewer than 120 requests, is too small to divide; \
                 raise it, or use ShouldRateLimit"
            }
            Indivisible::Large => "it is too large for a token bucket of Envoy",
            Indivisible::Name => "the policy's name is too long; it has at most 110 characters",
        }
    }
}

impl Division {
    /// Divides the limit of a policy.
    pub(super) fn new(policy: &Policy) -> Result<Self, Indivisible> {
        let [limit] = policy.limits() else { return Err(Indivisible::Several) };
        if policy.ban().is_some() {
            return Err(Indivisible::Ban);
        }
        if limit.counts_denied() {
            return Err(Indivisible::CountsDenied);
        }
        let spec = limit.spec();
        let (count, burst) = match spec.kind {
            Kind::TokenBucket { burst } => (spec.count, burst),
            // `burst + count` in any time of a window is what the window admits.
            Kind::Fixed { .. }
            | Kind::FixedFromFirst
            | Kind::Log
            | Kind::Sliding
            | Kind::SlidingBy { .. } => (spec.count - spec.count / 20, spec.count / 20),
            _ => return Err(Indivisible::Kind),
        };
        let window = spec.window;
        if burst < MIN_BURST {
            return Err(Indivisible::Burst);
        }
        let tokens = |fill| scale(count * 49, fill * 1_000_000, window.get() * 50);
        let fill = FILLS.into_iter().find(|fill| tokens(*fill) >= ENOUGH_UNITS).unwrap_or(100);
        let tokens = tokens(fill);
        if tokens < MIN_UNITS {
            return Err(Indivisible::Small);
        }
        let tokens_per_fill = tokens.div_ceil(MAX_UNITS);
        let units = tokens / tokens_per_fill;
        let (quarter, rest) = (burst / 4, burst - burst / 4);
        if u32::try_from(tokens).is_err() || u32::try_from(rest).is_err() {
            return Err(Indivisible::Large);
        }
        let concurrent = |count| Spec::new(count, LEASE, Kind::Concurrent).build();
        let start =
            Spec::new(count, Micros::new(window.get() * 50), Kind::TokenBucket { burst: quarter });
        let named = |prefix: &str, limit: Result<Limit, _>| {
            let limit = limit.map_err(|_| Indivisible::Large)?;
            let name = format!("@quota-{prefix}.{}", policy.name().trim_start_matches('@'));
            Policy::reserved(&name, [limit]).map_err(|_| Indivisible::Name)
        };
        Ok(Division {
            policy: policy.clone(),
            // After a reload with another fill interval, units are other rates, and clients begin again.
            rates: named(&format!("rates-{fill}"), concurrent(units))?,
            demands: [
                named("demand-0", concurrent(MAX_HELD))?,
                named("demand-1", concurrent(MAX_HELD))?,
            ],
            starts: named(&format!("starts-{fill}"), start.build())?,
            units,
            tokens_per_fill,
            fill,
            burst: rest,
        })
    }

    /// The demand of a client that received this many requests in a time: a quarter more, so that
    /// its load can grow.
    pub(super) fn demand(&self, requests: u64, span: Micros) -> u64 {
        let whole = u128::from(self.units) * u128::from(self.tokens_per_fill);
        let numerator = u128::from(requests) * u128::from(FULL_DEMAND * self.fill * 1_250_000);
        let demand = numerator.div_ceil((whole * u128::from(span.get())).max(1));
        u64::try_from(demand).unwrap_or(MAX_DEMAND).clamp(1, MAX_DEMAND)
    }

    /// The demand whose share is the fewest units, if all clients need `sum`.
    pub(super) fn min_demand(&self, sum: u64) -> u64 {
        (self.min_units() * sum.max(FULL_DEMAND)).div_ceil(self.units)
    }

    /// The units of a client with this demand, if all clients need `sum`.
    pub(super) fn share(&self, demand: u64, sum: u64) -> u64 {
        let share = scale(self.units, demand, sum.max(FULL_DEMAND));
        share.max(self.min_units()).min(self.units)
    }

    /// The fewest units with a whole token.
    pub(super) fn min_units(&self) -> u64 {
        self.units.div_ceil(self.burst)
    }

    /// The most tokens of a client with these units.
    pub(super) fn max_tokens(&self, units: u64) -> u64 {
        scale(self.burst, units, self.units)
    }

    /// The tokens that these units refill in each fill interval.
    pub(super) fn refill(&self, units: u64) -> u64 {
        self.tokens_per_fill * units
    }
}

/// The digits of a demand.
pub(super) const fn digits(demand: u64) -> [u64; 2] {
    [demand % DIGIT, demand / DIGIT]
}

/// The sum of all demands, from what the concurrency limits of the digits can still hold.
pub(super) fn sum(remaining: [u64; 2]) -> u64 {
    let [low, high] = remaining.map(|remaining| MAX_HELD.saturating_sub(remaining));
    low + DIGIT * high
}

/// `value · numerator / denominator`, rounded down.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}
