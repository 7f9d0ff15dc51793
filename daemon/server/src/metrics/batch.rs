//! Requests that a connection has sent together: counted here, and added to what others count once
//! for all of them. An addition to a number that others add to costs as much as a good part of a
//! decision.

use tollgate::{Decision, Policy, StoreError, Timestamp};

use super::tally::{Sums, Surface, Tally};
use super::told::Told;
use crate::daemon::Daemon;
use crate::live::Live;

/// Requests that a connection has sent together. They are counted when it falls.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    daemon: &'a Daemon,
    live: &'a Live,
    surface: Surface,
    /// When the first of them was read.
    since: Timestamp,
    /// Whose sums these are, by the hash of the policy's name.
    tally: Option<(u64, &'a Tally)>,
    sums: Sums,
    requests: u64,
    is_heard: bool,
}

impl<'a> Batch<'a> {
    /// Of requests that have just been read.
    #[inline]
    pub(crate) fn begin(daemon: &'a Daemon, live: &'a Live, surface: Surface) -> Self {
        Batch {
            daemon,
            live,
            surface,
            since: daemon.clock.now(),
            tally: None,
            sums: Sums::default(),
            requests: 0,
            is_heard: Told::if_heard().is_some(),
        }
    }

    /// Counts a request of one check.
    #[inline]
    pub(crate) fn decided(&mut self, policy: &Policy, decision: &Decision) {
        self.requests += 1;
        let hash = policy.name_hash();
        if self.tally.is_none_or(|tally| tally.0 != hash) {
            self.turn_to(policy);
        }
        let word = self.sums.count(decision);
        if self.is_heard {
            self.tell([(policy, word)]);
        }
    }

    /// Counts a request of several checks, each under its policy.
    pub(crate) fn decided_together<'d>(
        &mut self,
        decisions: impl IntoIterator<Item = (&'d Policy, &'d Decision)>,
    ) {
        self.requests += 1;
        let mut words = Vec::new();
        for (policy, decision) in decisions {
            self.turn_to(policy);
            let word = self.sums.count(decision);
            if self.is_heard {
                words.push((policy, word));
            }
        }
        if self.is_heard {
            self.tell(words);
        }
    }

    /// Counts checks that got no decision, unless the request itself is at fault.
    pub(crate) fn refused<'d>(
        &mut self,
        policies: impl IntoIterator<Item = &'d Policy>,
        error: &StoreError,
    ) {
        if error.failure().is_none() {
            return;
        }
        self.requests += 1;
        let mut words = Vec::new();
        for policy in policies {
            self.turn_to(policy);
            words.push((policy, self.sums.count_error()));
        }
        if self.is_heard {
            self.tell(words);
        }
    }

    /// Counts under this policy from here on.
    fn turn_to(&mut self, policy: &Policy) {
        let hash = policy.name_hash();
        if self.tally.is_some_and(|tally| tally.0 == hash) {
            return;
        }
        self.add();
        self.tally = Some((hash, self.live.tallies.of(policy)));
    }

    fn add(&mut self) {
        let sums = std::mem::take(&mut self.sums);
        if let Some((_, tally)) = self.tally {
            tally.add(self.surface, &sums);
        }
    }

    #[cold]
    fn tell<'d>(&self, words: impl IntoIterator<Item = (&'d Policy, &'static str)>) {
        let mut told = Told::default();
        for (policy, word) in words {
            told.add(&self.live.tallies.of(policy).policy, word);
        }
        let took = self.daemon.clock.now().duration_since(self.since);
        told.tell(self.surface, None, self.since, took);
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        if self.requests == 0 {
            return;
        }
        self.add();
        let took = self.daemon.clock.now().duration_since(self.since);
        self.daemon.metrics.latency(self.surface).count_many(took, self.requests);
    }
}
