//! A bucket of a client: its demand, its leases and its assignment.

use tollgate::{Id, Micros, Timestamp};

use super::division::{Division, FULL_DEMAND, MAX_DEMAND, SLACK, TTL};

/// The time between two assignments of a bucket.
pub(super) const RENEWAL: Micros = Micros::from_secs(4);
/// The time until an assignment that could not be made, or only in part, is tried again.
pub(super) const RETRY: Micros = Micros::from_secs(1);
/// A bucket without requests for this time is abandoned.
const IDLE: Micros = Micros::from_secs(60);
/// Leases above this number are made fewer by letting small ones expire.
const MAX_LEASES: usize = 24;

/// The id of a bucket: its pairs, in order of their names.
pub(super) type BucketId = Vec<(String, String)>;

/// A bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    /// When it gets its next assignment.
    pub(super) due: Timestamp,
    /// When it was reported first.
    since: Timestamp,
    /// Whether the client had it before this stream, perhaps with an assignment.
    is_resumed: bool,
    reported: Timestamp,
    used: Timestamp,
    /// The requests since `reported`.
    requests: u64,
    /// The requests of the last report, and the time in which they arrived.
    load: Option<(u64, Micros)>,
    /// The demand as other daemons see it.
    pub(super) demand: u64,
    /// The demand of all clients in the last round.
    pub(super) sum: u64,
    /// The leases of the demand, by digit.
    pub(super) demand_leases: [Option<Id>; 2],
    /// The leases of units, and the fill interval of these units.
    pub(super) fill: u64,
    pub(super) leases: Vec<(Id, u64)>,
    /// The token bucket that was assigned last, if one was.
    pub(super) assignment: Option<Assignment>,
}

/// A token bucket that was assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) max_tokens: u64,
    pub(super) fill: u64,
    pub(super) sent: Timestamp,
}

impl Bucket {
    /// A bucket that was reported for the first time.
    pub(super) fn new(now: Timestamp, is_resumed: bool) -> Self {
        Bucket {
            due: now,
            since: now,
            is_resumed,
            reported: now,
            used: now,
            requests: 0,
            load: None,
            demand: 0,
            sum: FULL_DEMAND,
            demand_leases: [None; 2],
            fill: 0,
            leases: Vec::new(),
            assignment: None,
        }
    }

    /// Notes a further report. The time is that of the daemon: clients round theirs.
    pub(super) fn report(&mut self, requests: u64, now: Timestamp) {
        let span = now.duration_since(self.reported);
        if requests > 0 {
            self.used = now;
        }
        self.requests = self.requests.saturating_add(requests);
        // The first report of a bucket has a single request, and the next one may follow at once.
        if span >= RETRY {
            self.load = Some((std::mem::take(&mut self.requests), span));
            self.reported = now;
        }
    }

    /// Whether it had no requests for long.
    pub(super) fn is_idle(&self, now: Timestamp) -> bool {
        now.duration_since(self.used) > IDLE
    }

    /// Updates the demand, and returns whether it changed. It falls in steps, and small changes are
    /// ignored.
    pub(super) fn update_demand(&mut self, division: &Division) -> bool {
        let demand = match self.load {
            // A quarter of the limit, until it is known.
            None => FULL_DEMAND / 4,
            Some((requests, span)) => division.demand(requests, span),
        };
        let demand = demand.max(division.min_demand(self.sum)).min(MAX_DEMAND);
        let demand = demand.max(self.demand / 4);
        let has_changed = demand.abs_diff(self.demand) > self.demand / 32;
        if has_changed {
            self.demand = demand;
        }
        has_changed
    }

    /// The units that it holds leases of.
    pub(super) fn units(&self) -> u64 {
        self.leases.iter().map(|(_, units)| units).sum()
    }

    /// Lets leases expire of which it needs less, or which are too many.
    pub(super) fn shrink(&mut self, target: u64) {
        self.leases.sort_unstable_by_key(|(_, units)| std::cmp::Reverse(*units));
        if self.leases.len() > MAX_LEASES {
            self.leases.truncate(MAX_LEASES / 2);
        }
        if self.units() <= target + target / 16 {
            return;
        }
        let mut rest = target;
        self.leases.retain(|(_, units)| {
            let is_kept = *units <= rest;
            if is_kept {
                rest -= units;
            }
            is_kept
        });
    }

    /// The units to acquire leases of, of those that are available: several, so that some can expire
    /// later.
    pub(super) fn growth(&self, division: &Division, target: u64, available: u64) -> Vec<u64> {
        let held = self.units();
        let units = target.saturating_sub(held).min(available);
        let is_crumb = self.leases.len() >= MAX_LEASES / 2 && units < target / 64;
        if units == 0 || is_crumb || held + units < division.min_units() {
            return Vec::new();
        }
        if units < 8 {
            return vec![units];
        }
        vec![units / 2, units / 4, units - units / 2 - units / 4]
    }

    /// Whether it waits because the client may still have a better assignment from before this
    /// stream.
    pub(super) fn waits(&self, target: u64, now: Timestamp) -> bool {
        self.is_resumed
            && self.assignment.is_none()
            && self.units() < target
            && now.duration_since(self.since) < TTL
    }

    /// The tokens that the client certainly still counts on when it receives the next message.
    pub(super) fn active_tokens(&self, now: Timestamp) -> u64 {
        let certain = Micros::new(TTL.get() - SLACK.get());
        let is_active = |assignment: &Assignment| {
            assignment.fill == self.fill && now.duration_since(assignment.sent) < certain
        };
        self.assignment.filter(is_active).map_or(0, |assignment| assignment.max_tokens)
    }
}
