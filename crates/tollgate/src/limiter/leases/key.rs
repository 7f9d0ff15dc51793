//! What this process holds of the quota of one key.

use fastrand::Rng;
use tollgate_algorithms::{Cost, Decision, HeldQuota, Limit, MIN_LEASE, Micros, Reason, Timestamp};

use super::super::key_table::PolicyKey;
use super::demand::{Demand, Rate, within};

/// A lease ends by this part of the hold time early: the clocks of the process and of the store may each
/// be off by 500 ppm.
const MARGIN: u64 = 1_000;
/// The shortest time after which a denied request should be repeated.
const MIN_WAIT: Micros = Micros::from_millis(1);

/// A point in time, on both clocks of this process. A lease ends on the earlier of the two: the
/// monotonic clock may stop while the machine sleeps, and the other may be set back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::limiter) struct Now {
    pub(in crate::limiter) monotonic: Timestamp,
    pub(in crate::limiter) wall: Timestamp,
}

impl Now {
    /// The time since an earlier one, on the clock on which more has passed.
    fn since(self, earlier: Now) -> Micros {
        let monotonic = self.monotonic.duration_since(earlier.monotonic);
        monotonic.max(self.wall.duration_since(earlier.wall))
    }
}

/// A charge in advance.
#[derive(Clone, Debug)]
pub(super) struct Charge {
    pub(super) cost: Cost,
    /// When it was made, before it is sent.
    at: Now,
    /// The lease that it is for.
    lease: u64,
}

/// What a check causes besides its decision.
#[derive(Debug, Default)]
pub(super) struct Effects {
    /// The next charge, if it is time for one.
    pub(super) charge: Option<Charge>,
    /// What can be refunded.
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
    pub(super) subject: PolicyKey,
    /// Distinguishes it from others of the key, earlier and later.
    id: u64,
    hold: Micros,
    /// The greatest cost that is ever admitted.
    capacity: u64,
    /// The oldest first.
    lots: Vec<Lot>,
    demand: Demand,
    /// Until when the answer to a charge is awaited.
    charging_until: Timestamp,
    /// The last decision of the store that granted less than what was wanted, and when it was made.
    exhausted: Option<(Decision, Now)>,
    /// When the fixed window ends that was last charged.
    window_end: Timestamp,
    /// The next charge is not made before this time.
    charge_after: Timestamp,
    last_used: Now,
    rng: Rng,
}

impl KeyLease {
    pub(super) fn new(subject: PolicyKey, hold: Micros, now: Now, id: u64) -> Self {
        KeyLease {
            id,
            hold,
            capacity: subject.policy.limits().iter().map(Limit::capacity).min().unwrap_or(0),
            subject,
            lots: Vec::new(),
            demand: Demand::new(now.monotonic),
            charging_until: Timestamp::EPOCH,
            exhausted: None,
            window_end: Timestamp::EPOCH,
            charge_after: Timestamp::EPOCH,
            last_used: now,
            rng: Rng::with_seed(id),
        }
    }

    /// Decides a check from what this process holds, or denies it while the store is known to have less
    /// than what is wanted; `None` if the store has to decide it.
    #[inline]
    pub(super) fn decide(
        &mut self,
        cost: Cost,
        now: Now,
        effects: &mut Effects,
    ) -> Option<Decision> {
        if cost.get() > self.capacity {
            // It is never admitted, and creates no demand.
            return None;
        }
        self.last_used = now;
        self.demand.add(cost, now.monotonic, self.hold);
        if self.lots.first().is_some_and(|lot| !lot.is_valid(now)) {
            effects.unspent = self.expire(now);
        }
        let spent = self.spend(cost, now);
        effects.charge = self.charge(now);
        spent.or_else(|| self.deny(now))
    }

    /// Whether [`decide`](Self::decide) decides a check, rather than the store.
    pub(super) fn can_decide(&self, cost: Cost, now: Now) -> bool {
        let is_held = || cost.get() <= self.held(now);
        cost.get() <= self.capacity && (self.exhausted.is_some() || is_held())
    }

    fn held(&self, now: Now) -> u64 {
        self.lots.iter().filter(|lot| lot.is_valid(now)).map(|lot| lot.left).sum()
    }

    /// What is held, for an inspection.
    pub(super) fn held_quota(&self, now: Now) -> Option<HeldQuota> {
        let ends_after = self.lots.iter().map(|lot| lot.rest(now)).max()?;
        let remaining = self.held(now);
        (remaining > 0).then_some(HeldQuota { remaining, ends_after })
    }

    #[inline]
    fn spend(&mut self, cost: Cost, now: Now) -> Option<Decision> {
        let left = self.held(now).checked_sub(cost.get())?;
        let mut wanted = cost.get();
        let last = self.lots.iter_mut().filter(|lot| lot.is_valid(now)).find_map(|lot| {
            let part = lot.left.min(wanted);
            lot.left -= part;
            wanted -= part;
            (wanted == 0).then_some(lot)
        })?;
        let spent = last.charged.spent_from_lease(cost, left, now.since(last.at));
        self.lots.retain(|lot| lot.left > 0);
        Some(spent)
    }

    fn deny(&self, now: Now) -> Option<Decision> {
        let (decision, at) = self.exhausted.as_ref()?;
        let elapsed = now.since(*at);
        // The store denies a unit for so long, or all of a window is used.
        let by_store = match decision.granted {
            0 => decision.retry_after,
            _ if decision.remaining == 0 && self.subject.policy.has_only_fixed_windows() => {
                self.subject.policy.rest_of_window(decision)
            }
            _ => None,
        };
        let by_store = by_store.unwrap_or_default().get().saturating_sub(elapsed.get());
        let wait = self.charge_after.duration_since(now.monotonic).max(Micros::new(by_store));
        Some(decision.denied_by_lease(wait.max(MIN_WAIT), elapsed))
    }

    fn charge(&mut self, now: Now) -> Option<Charge> {
        if now.monotonic < self.charging_until || now.monotonic < self.charge_after {
            return None;
        }
        let (requests, wanted) = self.wanted(now);
        if requests < MIN_LEASE {
            self.exhausted = None;
            return None;
        }
        let usable: u64 = self.lots.iter().map(|lot| lot.usable(self.demand.rate, now)).sum();
        if usable > wanted / 8 {
            return None;
        }
        let cost = Cost::new(wanted.saturating_sub(usable)).filter(|cost| *cost > Cost::ZERO)?;
        self.charging_until = now.monotonic.saturating_add(self.hold);
        Some(Charge { cost, at: now, lease: self.id })
    }

    /// The requests that are expected within the hold time, or until the fixed window ends, and their
    /// cost.
    fn wanted(&self, now: Now) -> (u64, u64) {
        let rest = self.window_end.duration_since(now.monotonic);
        if rest > Micros::ZERO && rest < self.hold && self.demand.rate.cost > 0 {
            let Rate { requests, cost } = self.demand.rate;
            return (within(requests, rest), within(cost, rest));
        }
        self.demand.within(self.hold)
    }

    /// Adds what the store has granted for a charge.
    pub(super) fn grant(&mut self, charge: &Charge, granted: Decision, now: Now) {
        if charge.lease != self.id {
            // An operation has changed the key since.
            return;
        }
        self.charging_until = Timestamp::EPOCH;
        let is_partial = granted.granted < charge.cost.get();
        // Blocks are the store's to decide.
        let is_by_limits = granted.reason == Reason::Limit;
        self.exhausted = (is_partial && is_by_limits).then(|| (granted.clone(), now));
        let window = self.subject.policy.rest_of_window(&granted);
        if is_partial {
            let hold = self.varied_hold();
            let wait = window.map_or(hold, |rest| rest.min(hold));
            self.charge_after = now.monotonic.saturating_add(wait);
        }
        self.window_end = match window {
            Some(rest) => charge.at.monotonic.saturating_add(rest),
            None => Timestamp::EPOCH,
        };
        if granted.granted > 0 {
            // Nothing is spent after the window that it was charged to.
            let hold = window.map_or(self.hold, |rest| rest.min(self.hold)).get();
            let hold = Micros::new(hold - hold.div_ceil(MARGIN));
            self.lots.push(Lot { left: granted.granted, charged: granted, at: charge.at, hold });
        }
    }

    /// Takes note that the store did not answer. It decides the next checks, or its fallback does.
    pub(super) fn fail(&mut self, charge: &Charge, now: Now) {
        if charge.lease == self.id {
            (self.charging_until, self.exhausted) = (Timestamp::EPOCH, None);
            self.charge_after = now.monotonic.saturating_add(self.hold);
        }
    }

    /// Takes note that the store may have more than before.
    pub(super) fn renew(&mut self) {
        (self.exhausted, self.charge_after) = (None, Timestamp::EPOCH);
    }

    /// The hold time, a fifth longer or shorter, so that processes do not stay in step.
    fn varied_hold(&mut self) -> Micros {
        let hold = self.hold.get();
        Micros::new(self.rng.u64(hold - hold / 5..=hold + hold / 5))
    }

    /// Removes what can no longer be spent, and returns what can be refunded.
    pub(super) fn expire(&mut self, now: Now) -> Vec<Unspent> {
        self.remove(|lot| !lot.is_valid(now))
    }

    /// Removes everything, and returns what can be refunded.
    pub(super) fn end(&mut self) -> Vec<Unspent> {
        self.remove(|_| true)
    }

    /// Removes lots. Token buckets are not refunded: a bucket may have been full since, and would have more
    /// than without the lease.
    fn remove(&mut self, is_removed: impl Fn(&Lot) -> bool) -> Vec<Unspent> {
        let is_refundable = !self.subject.policy.limits().iter().any(Limit::can_reserve);
        let mut unspent = Vec::new();
        self.lots.retain(|lot| {
            let removed = is_removed(lot);
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
        self.lots.is_empty() && is_unused
    }
}

impl Lot {
    fn is_valid(&self, now: Now) -> bool {
        now.since(self.at) < self.hold
    }

    /// How much of it will be spent at this rate before it ends.
    fn usable(&self, rate: Rate, now: Now) -> u64 {
        match rate.cost {
            0 => self.left,
            cost => self.left.min(within(cost, self.rest(now))),
        }
    }

    /// How long it may still be spent.
    fn rest(&self, now: Now) -> Micros {
        Micros::new(self.hold.get().saturating_sub(now.since(self.at).get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryLimiter;
    use tollgate_algorithms::{Check, Policy, Source};
    use tollgate_state::{Key, ManualClock};

    /// A lease on a store, and the time of both.
    struct Fixture {
        store: MemoryLimiter,
        clock: ManualClock,
        lease: KeyLease,
    }

    impl Fixture {
        fn new(limits: &str) -> Self {
            let policy = Policy::named("api", limits).unwrap().leased(None).unwrap();
            let clock = ManualClock::at(Timestamp::from_micros(60_000_000));
            let now = Now { monotonic: clock.now(), wall: clock.now() };
            Fixture {
                store: MemoryLimiter::builder().clock(clock.clone()).build(),
                clock,
                lease: KeyLease::new(subject(&policy), policy.hold().unwrap(), now, 1),
            }
        }

        /// With the rest of a charge for 20 requests of which 2 were spent.
        fn charged(limits: &str) -> Self {
            let mut fixture = Fixture::new(limits);
            let charge = fixture.wait_for_charge();
            fixture.execute(&charge);
            assert_eq!(fixture.check(2).map(|decision| decision.granted), Some(2));
            fixture
        }

        fn now(&self) -> Now {
            Now { monotonic: self.clock.now(), wall: self.clock.now() }
        }

        fn result(&mut self, cost: u32) -> (Option<Decision>, Option<Charge>) {
            let (now, mut effects) = (self.now(), Effects::default());
            let decision = self.lease.decide(Cost::from(cost), now, &mut effects);
            (decision, effects.charge)
        }

        fn check(&mut self, cost: u32) -> Option<Decision> {
            self.result(cost).0
        }

        fn charge(&mut self, cost: u32) -> Option<Charge> {
            self.result(cost).1
        }

        fn wait_for_charge(&mut self) -> Charge {
            for _ in 0..19 {
                assert!(matches!(self.result(1), (None, None)), "too few requests");
            }
            self.charge(1).unwrap()
        }

        fn execute(&mut self, charge: &Charge) {
            let key = Key::new(b"k").unwrap();
            let granted = self.store.take(&self.lease.subject.policy, key, charge.cost).unwrap();
            let now = self.now();
            self.lease.grant(charge, granted, now);
        }
    }

    fn subject(policy: &Policy) -> PolicyKey {
        PolicyKey::new(&Check::new(policy, b"k"))
    }

    fn costs(unspent: &[Unspent]) -> Vec<u64> {
        unspent.iter().map(|unspent| unspent.cost.get()).collect()
    }

    #[test]
    fn all_but_token_buckets_are_refunded() {
        for (limits, expected) in
            [("1000/s", &[][..]), ("1000/s; 9000/d fixed", &[]), ("1000/min fixed", &[18])]
        {
            assert_eq!(costs(&Fixture::charged(limits).lease.end()), expected, "{limits}");
            let mut fixture = Fixture::charged(limits);
            fixture.clock.advance(Micros::from_secs(2));
            let now = fixture.now();
            assert_eq!(costs(&fixture.lease.expire(now)), expected, "{limits}");
            assert!(fixture.lease.expire(now).is_empty());
        }
    }

    #[test]
    fn a_decision_has_the_time_of_the_charge_and_what_the_store_had_left() {
        let mut fixture = Fixture::charged("1000/min fixed");
        fixture.clock.advance(Micros::from_millis(3));
        let decision = fixture.check(1).unwrap();
        assert_eq!((decision.source, decision.remaining), (Source::Lease, 980));
        assert_eq!((decision.capacity, decision.time.as_micros()), (1_000, 60_000_000));
        assert_eq!(decision.reset_after, Some(Micros::from_millis(59_997)));
        assert!(decision.changed && decision.charged_cost() == Cost::ONE);
        // All of the rest is held.
        let mut fixture = Fixture::charged("20/min fixed");
        let decision = fixture.check(1).unwrap();
        assert_eq!((decision.remaining, decision.capacity), (17, 20));
    }

    #[test]
    fn an_exhausted_window_is_denied_until_it_ends() {
        let mut fixture = Fixture::charged("20/min fixed");
        let (last, charge) = fixture.result(18);
        assert!(last.unwrap().allowed);
        fixture.execute(&charge.unwrap());
        fixture.clock.advance(Micros::from_millis(10));
        let denied = fixture.check(1).unwrap();
        assert!(!denied.allowed && denied.retry_after == Some(Micros::from_millis(59_990)));
        // What may never be admitted is left to the store.
        assert!(fixture.check(21).is_none());
    }

    #[test]
    fn few_requests_are_not_leased_whatever_they_cost() {
        let mut fixture = Fixture::new("1000/s");
        for _ in 0..19 {
            assert!(fixture.charge(40).is_none());
        }
        assert!(fixture.charge(901).is_none(), "never admitted");
        assert_eq!(fixture.charge(40).unwrap().cost.get(), 800);
    }

    #[test]
    fn without_an_answer_the_store_decides_and_the_next_charge_waits() {
        let mut fixture = Fixture::new("1000/s");
        let charge = fixture.wait_for_charge();
        let now = fixture.now();
        fixture.lease.fail(&charge, now);
        assert!(matches!(fixture.result(1), (None, None)));
        // Also if there is no answer at all.
        fixture.clock.advance(Micros::from_millis(100));
        assert!(fixture.charge(1).is_some());
        assert!((0..20).all(|_| fixture.charge(1).is_none()));
        fixture.clock.advance(Micros::from_millis(100));
        assert!(fixture.charge(1).is_some());
    }

    #[test]
    fn a_grant_for_an_earlier_lease_of_the_key_is_ignored() {
        let mut fixture = Fixture::new("1000/s");
        let charge = fixture.wait_for_charge();
        let (policy, now) = (fixture.lease.subject.policy.clone(), fixture.now());
        fixture.lease = KeyLease::new(subject(&policy), policy.hold().unwrap(), now, 2);
        fixture.execute(&charge);
        assert!(fixture.check(1).is_none());
    }
}
