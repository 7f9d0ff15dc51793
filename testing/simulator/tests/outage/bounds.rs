//! The bounds that a trace of decisions must keep.

use std::fmt;

use crate::traffic::{Event, KEYS, POLICIES, Trace};

/// How late the end of the last charge may be noticed.
const BLUR: u64 = 10_000;
const WINDOW: u64 = 10_000_000;
const BUCKET: u64 = 1_000_000;
/// The count, or the capacity and the rate, of every policy per window.
const LIMIT: u64 = 20;

/// The most that was admitted in a window, in percent of the limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overshoot {
    /// Over the whole trace.
    whole: u64,
    /// By shares alone.
    shares: u64,
}

impl Overshoot {
    pub(crate) fn merge(&mut self, other: Overshoot) {
        self.whole = self.whole.max(other.whole);
        self.shares = self.shares.max(other.shares);
    }
}

impl fmt::Display for Overshoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overshoot { whole, shares } = self;
        write!(f, "at most {whole} % of a limit in all, {shares} % by shares")
    }
}

/// Returns the greatest cost of events in percent of the bound of the policy, over all intervals.
fn worst(name: &str, events: &[Event]) -> u64 {
    let mut worst = 0;
    for (start, first) in events.iter().enumerate() {
        let mut sum = 0;
        for event in &events[start..] {
            let span = event.at - first.at;
            sum += event.cost;
            let bound = match name {
                "day" => LIMIT,
                "window" if event.at / WINDOW == first.at / WINDOW => LIMIT,
                "log" if span < WINDOW => LIMIT,
                "buckets" if span + BUCKET < WINDOW => LIMIT,
                // The capacity, and what is refilled meanwhile.
                "bucket" | "two" => LIMIT + LIMIT * span / WINDOW + 1,
                _ => break,
            };
            worst = worst.max((100 * sum).div_ceil(bound));
        }
    }
    worst
}

/// Asserts that what the store has charged for a limit of a day includes, whenever it admits a request,
/// all that the process of the request was granted before, by the store or by its share.
fn check_own_charges(trace: &Trace, key: usize) {
    let is_of = |event: &&Event| (event.policy, event.key, event.is_admitted) == (0, key, true);
    let admitted: Vec<_> = trace.events.iter().filter(is_of).collect();
    for event in admitted.iter().filter(|event| !event.is_local()) {
        let is_earlier =
            |other: &&&Event| other.process == event.process && other.at < event.sent_at;
        let own: u64 = admitted.iter().filter(is_earlier).map(|event| event.cost).sum();
        let charged = LIMIT - event.remaining;
        assert!(charged >= own + event.cost, "{charged} charged, {own} granted before");
    }
}

/// Asserts that a trace keeps its bounds; returns how far it exceeded the limits.
pub(crate) fn check(trace: &Trace, isolated: u64, processes: u64) -> Overshoot {
    let mut overshoot = Overshoot::default();
    (0..KEYS.len()).for_each(|key| check_own_charges(trace, key));
    for (policy, (name, _)) in POLICIES.iter().enumerate() {
        for key in 0..KEYS.len() {
            let events = |include: &dyn Fn(&Event) -> bool| -> Vec<Event> {
                let is_of = |event: &&Event| (event.policy, event.key) == (policy, key);
                let admitted = trace.events.iter().filter(|event| event.is_admitted);
                admitted.filter(is_of).filter(|event| include(event)).copied().collect()
            };
            let shares = worst(name, &events(&|event| event.is_local()));
            assert!(shares <= 100, "{name}: the shares admitted {shares} % of the limit");
            let whole = worst(name, &events(&|_| true));
            // The limit before the fault, and the shares during it; after it, the limit for processes
            // that do not know yet what the others have admitted.
            assert!(whole <= 300, "{name}: {whole} % of the limit was admitted");
            let is_settled = |event: &Event| {
                let is_early = event.at < trace.settled_at + BLUR;
                event.is_local() || (event.at >= trace.began_at && !is_early)
            };
            let afterwards = worst(name, &events(&is_settled));
            assert!(isolated > 0 || afterwards <= 100, "{name}: {afterwards} % after the fault");
            if isolated > 0 && !trace.loses_replies {
                // The others decide with the store.
                let shares = isolated * LIMIT.div_ceil(processes);
                let allowance = (100 * (LIMIT + shares)).div_ceil(LIMIT);
                assert!(
                    whole <= allowance,
                    "{name}: {whole} % of the limit, {allowance} % allowed"
                );
            }
            overshoot.merge(Overshoot { whole, shares });
        }
    }
    overshoot
}
