//! What this process holds of the quota of one key.

use fastrand::Rng;
use tollgate_core::{Cost, Decision, Kind, Limit, MIN_LEASE, Micros, Policy, Reason, Timestamp};

/// The part of the hold time by which a lease ends early: 500 ppm, the fastest that NTP usually slews
/// either clock, for both.
const MARGIN: u64 = 1_000;

/// The shortest time after which a denied request should be repeated.
const MIN_WAIT: Micros = Micros::from_millis(1);

/// A point in time, on both clocks of this process. A lease ends as soon as one of them says so: the
/// monotonic clock may stop while the machine sleeps, and the other may be set back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::limiter) struct Now {
    pub(in crate::limiter) monotonic: Timestamp,
    pub(in crate::limiter) wall: Timestamp,
}

impl Now {
    /// The time since an earlier one: the longer of what the two clocks say.
    fn since(self, earlier: Now) -> Micros {
        let monotonic = self.monotonic.duration_since(earlier.monotonic);
        monotonic.max(self.wall.duration_since(earlier.wall))
    }
}

/// A request for quota.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) cost: Cost,
    /// When it was made, before it is sent.
    pub(super) at: Now,
}

/// The result of a check.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The decision, unless the store has to make it.
    pub(super) decision: Option<Decision>,
    /// A request for more quota.
    pub(super) ask: Option<Ask>,
    /// Quota to give back.
    pub(super) unspent: Vec<Unspent>,
}

/// Quota that the store has charged.
#[derive(Debug)]
struct Lot {
    left: u64,
    charged: Decision,
    at: Now,
    /// How long it may be spent.
    hold: Micros,
}

/// Quota that was not spent in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::limiter) struct Unspent {
    pub(in crate::limiter) cost: Cost,
    /// When it was charged.
    pub(in crate::limiter) charged: Timestamp,
}

/// The quota of a key.
#[derive(Debug)]
pub(super) struct KeyLease {
    pub(super) policy: Policy,
    pub(super) key: Box<[u8]>,
    hold: Micros,
    /// The oldest first.
    lots: Vec<Lot>,
    demand: Demand,
    is_asking: bool,
    /// The last decision of the store that granted less than what was wanted, and when it was made.
    exhausted: Option<(Decision, Now)>,
    /// When the fixed window ends that was last charged.
    window_end: Timestamp,
    /// The store is not asked again before this time.
    ask_after: Timestamp,
    last_used: Now,
    rng: Rng,
}

impl KeyLease {
    pub(super) fn new(policy: &Policy, hold: Micros, key: &[u8], now: Now, seed: u64) -> Self {
        KeyLease {
            policy: policy.clone(),
            key: key.into(),
            hold,
            lots: Vec::new(),
            demand: Demand { since: now.monotonic, ..Demand::default() },
            is_asking: false,
            exhausted: None,
            window_end: Timestamp::EPOCH,
            ask_after: Timestamp::EPOCH,
            last_used: now,
            rng: Rng::with_seed(seed),
        }
    }

    /// Decides a check, if this process has enough, or knows that the store has not.
    pub(super) fn decide(&mut self, cost: Cost, now: Now) -> Step {
        self.last_used = now;
        self.demand.add(cost, now.monotonic, self.hold);
        let has_expired = self.lots.first().is_some_and(|lot| !lot.is_valid(now));
        let unspent = if has_expired { self.expire(now) } else { Vec::new() };
        let spent = self.spend(cost, now);
        let ask = self.ask(now);
        let decision = spent.or_else(|| self.deny(cost, now));
        Step { decision, ask, unspent }
    }

    fn spend(&mut self, cost: Cost, now: Now) -> Option<Decision> {
        let mut wanted = cost.get();
        let held: u64 = self.lots.iter().filter(|lot| lot.is_valid(now)).map(|lot| lot.left).sum();
        let left = held.checked_sub(wanted)?;
        let mut spent = None;
        for lot in self.lots.iter_mut().filter(|lot| lot.is_valid(now)) {
            let part = lot.left.min(wanted);
            lot.left -= part;
            wanted -= part;
            if wanted == 0 {
                spent = Some(lot.charged.spent_from_lease(cost, left, now.since(lot.at)));
                break;
            }
        }
        self.lots.retain(|lot| lot.left > 0);
        spent
    }

    /// Denies while the store is known to have less than what is wanted.
    fn deny(&self, cost: Cost, now: Now) -> Option<Decision> {
        let (decision, at) = self.exhausted.as_ref()?;
        // The store says that this cost is never admitted.
        let capacity = self.policy.limits().iter().map(Limit::capacity).min();
        capacity.filter(|capacity| cost.get() <= *capacity)?;
        let wait = self.ask_after.duration_since(now.monotonic).max(MIN_WAIT);
        Some(decision.denied_by_lease(wait, now.since(*at)))
    }

    fn ask(&mut self, now: Now) -> Option<Ask> {
        if self.is_asking || now.monotonic < self.ask_after {
            return None;
        }
        let wanted = self.wanted(now);
        if wanted < MIN_LEASE {
            self.exhausted = None;
            return None;
        }
        let usable: u64 = self.lots.iter().map(|lot| self.demand.usable(lot, now)).sum();
        if usable > wanted / 8 {
            return None;
        }
        self.is_asking = true;
        Cost::new(wanted - usable).map(|cost| Ask { cost, at: now })
    }

    /// What is wanted within the hold time, or until the fixed window ends: what is held then is lost.
    fn wanted(&self, now: Now) -> u64 {
        let rest = self.window_end.duration_since(now.monotonic);
        match rest {
            Micros::ZERO => self.demand.within(self.hold),
            rest if rest < self.hold && self.demand.rate > 0 => self.demand.expected(rest),
            _ => self.demand.within(self.hold),
        }
    }

    /// Takes over what the store has granted.
    pub(super) fn grant(&mut self, ask: &Ask, granted: Decision, now: Now) {
        self.is_asking = false;
        let is_partial = granted.granted < ask.cost.get();
        // Blocks and lists are the store's to decide.
        let is_by_limits = granted.reason == Reason::Limit;
        self.exhausted = (is_partial && is_by_limits).then(|| (granted.clone(), now));
        let window = self.rest_of_window(&granted);
        if is_partial {
            let hold = self.jittered_hold();
            self.ask_after =
                now.monotonic.saturating_add(window.map_or(hold, |rest| rest.min(hold)));
        }
        self.window_end = match window {
            Some(rest) => ask.at.monotonic.saturating_add(rest),
            None => Timestamp::EPOCH,
        };
        if granted.granted > 0 {
            // Nothing is spent after the window that it was charged to.
            let hold = window.map_or(self.hold, |rest| rest.min(self.hold)).get();
            let hold = Micros::new(hold - hold.div_ceil(MARGIN));
            self.lots.push(Lot { left: granted.granted, charged: granted, at: ask.at, hold });
        }
    }

    /// Takes note that the store did not answer. It decides the next checks, or its fallback does.
    pub(super) fn fail(&mut self, now: Now) {
        (self.is_asking, self.exhausted) = (false, None);
        self.ask_after = now.monotonic.saturating_add(self.hold);
    }

    /// How long the first fixed window lasts that a decision was made in.
    fn rest_of_window(&self, decision: &Decision) -> Option<Micros> {
        let limits = self.policy.limits().iter().zip(decision.each_limit());
        let windows = limits.filter(|(limit, _)| is_fixed(limit));
        windows.map(|(_, state)| state.reset_after).min()
    }

    /// The hold time, a fifth longer or shorter, so that processes do not stay in step.
    fn jittered_hold(&mut self) -> Micros {
        let hold = self.hold.get();
        Micros::new(self.rng.u64(hold - hold / 5..=hold + hold / 5))
    }

    /// Removes what can no longer be spent, and returns what the store can be given back.
    ///
    /// Quota of a token bucket is not given back: the bucket may have been full in between, and then
    /// would have more than without the lease.
    pub(super) fn expire(&mut self, now: Now) -> Vec<Unspent> {
        self.remove(|lot| !lot.is_valid(now))
    }

    /// Removes everything, and returns what the store can be given back.
    pub(super) fn give_back(&mut self) -> Vec<Unspent> {
        self.remove(|_| true)
    }

    fn remove(&mut self, is_removed: impl Fn(&Lot) -> bool) -> Vec<Unspent> {
        let is_refundable = self.policy.limits().iter().all(|limit| !limit.can_reserve());
        let mut unspent = Vec::new();
        self.lots.retain(|lot| {
            let removed = is_removed(lot) || lot.left == 0;
            if removed
                && is_refundable
                && let Some(cost) = Cost::new(lot.left).filter(|cost| *cost > Cost::ZERO)
            {
                unspent.push(Unspent { cost, charged: lot.charged.time });
            }
            !removed
        });
        unspent
    }

    /// Whether it has nothing, and was not used for some hold times.
    pub(super) fn is_idle(&self, now: Now) -> bool {
        let is_unused = now.since(self.last_used).get() > self.hold.get().saturating_mul(4);
        self.lots.is_empty() && !self.is_asking && is_unused
    }
}

impl Lot {
    fn is_valid(&self, now: Now) -> bool {
        now.since(self.at) < self.hold
    }
}

fn is_fixed(limit: &Limit) -> bool {
    matches!(limit.spec().kind, Kind::Fixed { .. } | Kind::FixedFromFirst)
}

/// How much is wanted of a key.
#[derive(Debug, Default)]
struct Demand {
    /// Since when requests are counted.
    since: Timestamp,
    cost: u64,
    /// The cost per second, before that.
    rate: u64,
}

impl Demand {
    fn add(&mut self, cost: Cost, now: Timestamp, hold: Micros) {
        let elapsed = now.duration_since(self.since).get();
        if elapsed >= hold.get() {
            let rate = self.cost.saturating_mul(1_000_000) / elapsed.max(1);
            // It falls slowly, so that the gaps between bursts do not count.
            let is_recent = elapsed < 4 * hold.get();
            self.rate = if is_recent { rate.max(rate.midpoint(self.rate)) } else { rate };
            (self.since, self.cost) = (now, 0);
        }
        self.cost = self.cost.saturating_add(cost.get());
    }

    /// What is wanted within a time, at least what was wanted since the last estimate.
    fn within(&self, time: Micros) -> u64 {
        self.expected(time).max(self.cost).min(Cost::MAX.get())
    }

    fn expected(&self, time: Micros) -> u64 {
        let expected = u128::from(self.rate) * u128::from(time.get()) / 1_000_000;
        u64::try_from(expected).unwrap_or(u64::MAX)
    }

    /// How much of a lot will be spent before it ends.
    fn usable(&self, lot: &Lot, now: Now) -> u64 {
        let rest = lot.hold.get().saturating_sub(now.since(lot.at).get());
        match self.rate {
            0 => lot.left,
            _ => lot.left.min(self.expected(Micros::new(rest))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLimiter;
    use tollgate_core::Source;
    use tollgate_store::Key;

    /// Takes quota for a key, and spends 2 of it.
    fn lease(limits: &str) -> (KeyLease, Now) {
        let policy = Policy::named("api", limits).unwrap().leased(None).unwrap();
        let hold = policy.hold().unwrap();
        let at = Now { monotonic: Timestamp::from_micros(1), wall: Timestamp::from_micros(1) };
        let mut lease = KeyLease::new(&policy, hold, b"k", at, 1);
        assert!(lease.decide(Cost::from(19), at).ask.is_none(), "too little for a lease");
        let ask = lease.decide(Cost::ONE, at).ask.unwrap();
        let limiter = MemoryLimiter::new();
        let granted = limiter.take(&policy, Key::new(b"k").unwrap(), ask.cost).unwrap();
        lease.grant(&ask, granted, at);
        let spent = lease.decide(Cost::from(2), at).decision.unwrap();
        assert!(spent.allowed && spent.granted == 2 && spent.changed);
        (lease, at)
    }

    #[test]
    fn only_the_quota_of_windows_is_given_back() {
        let costs = |unspent: Vec<Unspent>| -> Vec<u64> {
            unspent.iter().map(|unspent| unspent.cost.get()).collect()
        };
        for (limits, expected) in [("1000/s", vec![]), ("1000/min fixed", vec![18])] {
            assert_eq!(costs(lease(limits).0.give_back()), expected, "{limits}");
            let (mut expired, mut at) = lease(limits);
            at.wall = at.wall.saturating_add(Micros::from_secs(2));
            assert_eq!(costs(expired.expire(at)), expected, "{limits}");
            assert!(expired.expire(at).is_empty());
        }
    }

    #[test]
    fn a_decision_from_a_lease_has_the_numbers_of_the_store_and_the_rest_of_the_lease() {
        let (mut lease, at) = lease("1000/min fixed");
        let decision = lease.decide(Cost::ONE, at).decision.unwrap();
        assert_eq!((decision.source, decision.remaining), (Source::Lease, 980 + 17));
        assert_eq!(decision.capacity, 1_000);
    }

    #[test]
    fn without_an_answer_the_store_decides() {
        let (mut lease, at) = lease("1000/s");
        let late = Now { monotonic: at.monotonic.saturating_add(Micros::from_secs(1)), ..at };
        let step = lease.decide(Cost::from(30), late);
        assert!(step.decision.is_none() && step.ask.is_some());
        lease.fail(late);
        let step = lease.decide(Cost::from(30), late);
        assert!(step.decision.is_none() && step.ask.is_none(), "it waits for the hold time");
    }
}
