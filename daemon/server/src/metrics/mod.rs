//! What the daemon counts of itself, and the page on which it is read.
//!
//! Counting takes atomic additions and nothing else; whatever is costly happens when the page is
//! written. No label carries a key, nor anything else that a caller chose.

mod accept;
mod answer;
mod batch;
mod connections;
mod counter;
mod families;
mod latency;
mod page;
mod process;
mod reference;
mod reloads;
mod scrape;
mod tally;
mod timed;
mod told;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tollgate::{Policies, Policy, Timestamp};

use self::connections::Traffic;
use self::latency::Latency;
use self::reloads::Reloads;
use crate::ratelimit::Domains;
use crate::role::Role;

pub(crate) use self::answer::{answer, page_of};
pub(crate) use self::batch::Batch;
pub(crate) use self::connections::Cut;
pub(crate) use self::counter::Counter;
pub use self::families::{FAMILIES, Family, FamilyKind};
pub(crate) use self::reference::statsd;
pub(crate) use self::tally::{Surface, Tallies};
pub(crate) use self::timed::Timed;
pub use self::told::DECISIONS;

/// What the daemon counts of itself.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Those of the policies that hold now.
    tallies: Mutex<Tallies>,
    latencies: [Latency; Surface::ALL.len()],
    traffic: [Traffic; Role::ALL.len()],
    reloads: Reloads,
    /// Whether the store was there at the last look.
    store_up: Counter,
    /// What operators did, by verb.
    audits: Mutex<BTreeMap<&'static str, u64>>,
    /// Requests of forward-auth that no rule was for, and what became of them.
    no_rule_passed: Counter,
    no_rule_denied: Counter,
}

impl Metrics {
    /// Of a daemon that was started with a good configuration at this time.
    pub(crate) fn new(started: Timestamp) -> Self {
        Metrics {
            tallies: Mutex::default(),
            latencies: Default::default(),
            traffic: Default::default(),
            reloads: Reloads::new(started),
            store_up: Counter::default(),
            audits: Mutex::default(),
            no_rule_passed: Counter::default(),
            no_rule_denied: Counter::default(),
        }
    }

    /// What is counted for each of these policies from now on; those that were there before go on
    /// where they were. Called once for each configuration that is to hold.
    pub(crate) fn tallies_of(&self, policies: &Policies, domains: &Domains) -> Tallies {
        let mut tallies = lock(&self.tallies);
        let of_domains: BTreeSet<_> = domains.policies().map(|(_, x)| x.name()).collect();
        *tallies = tallies.followed_by(policies.iter().map(Policy::name).chain(of_domains));
        tallies.clone()
    }

    /// Notes that the configuration was read anew, and whether it holds now.
    pub(crate) fn reloaded(&self, is_good: bool, now: Timestamp) {
        self.reloads.count(is_good, now);
    }

    /// Notes whether the store is there.
    pub(crate) fn store_seen(&self, is_up: bool) {
        self.store_up.set(u64::from(is_up));
    }

    /// Counts what an operator did; the word is one of our own, never a caller's.
    pub(crate) fn audited(&self, verb: &'static str) {
        *lock(&self.audits).entry(verb).or_default() += 1;
    }

    /// Counts a request of forward-auth that no rule is for.
    pub(crate) fn no_rule(&self, passes: bool) {
        if passes { self.no_rule_passed.count() } else { self.no_rule_denied.count() }
    }

    /// What is counted of a listener.
    pub(crate) fn traffic(&self, role: Role) -> &Traffic {
        let [http, grpc, resp, metrics, debug] = &self.traffic;
        match role {
            Role::Http => http,
            Role::Grpc => grpc,
            Role::Resp => resp,
            Role::Metrics => metrics,
            Role::Debug => debug,
        }
    }

    fn latency(&self, surface: Surface) -> &Latency {
        let [http, forward_auth, envoy, resp] = &self.latencies;
        match surface {
            Surface::Http => http,
            Surface::ForwardAuth => forward_auth,
            Surface::Envoy => envoy,
            Surface::Resp => resp,
        }
    }
}

/// Counts are never half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_reload_is_told_and_forgets_no_good_one() {
        let at = Timestamp::from_micros;
        let metrics = Metrics::new(at(1));
        let told = || {
            let reloads = &metrics.reloads;
            let [(_, good), (_, bad)] = reloads.by_result();
            (good, bad, reloads.is_good(), reloads.held_since())
        };
        assert_eq!(told(), (0, 0, 1, 1));
        metrics.reloaded(false, at(2));
        assert_eq!(told(), (0, 1, 0, 1));
        metrics.reloaded(true, at(3));
        assert_eq!(told(), (1, 1, 1, 3));
    }

    #[test]
    fn what_no_rule_is_for_is_counted_by_what_became_of_it() {
        let metrics = Metrics::new(Timestamp::from_micros(1));
        for passes in [true, true, false] {
            metrics.no_rule(passes);
        }
        assert_eq!((metrics.no_rule_passed.get(), metrics.no_rule_denied.get()), (2, 1));
    }
}
