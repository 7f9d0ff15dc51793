//! Decisions counted per policy.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tollgate::{Decision, Micros, Policy, Reason, Timestamp};

use super::counter::Counter;

named_enum! {
    /// The interface on which a decision was requested.
    pub Surface,
    /// The value of the label `surface`.
    fn as_str;
    /// The JSON API.
    Http = "http",
    /// Forward auth of a gateway.
    ForwardAuth = "forward_auth",
    /// Envoy's rate limit service.
    Envoy = "envoy",
    /// The Redis protocol.
    Resp = "resp",
}

/// The most policies that are counted under their own names.
const MAX_NAMES: usize = 1_000;
/// The name of the remaining policies, and of inline limits. No policy has such a name: those begin
/// with a letter.
const OTHER: &str = "_other";
const INLINE: &str = "_inline";
/// The policy of `CL.THROTTLE`.
const THROTTLE: &str = "@throttle";

named_enum! {
    /// The category of an answer.
    pub(super) Answer,
    /// The value of the label `answer`.
    fn as_str;
    Allowed = "allowed",
    Denied = "denied",
    Never = "never",
    ShadowDenied = "shadow_denied",
    Error = "error",
    Banned = "banned",
}

impl Answer {
    #[inline]
    fn new(decision: &Decision) -> Self {
        match decision {
            decision if decision.is_shadow_denial() => Answer::ShadowDenied,
            Decision { allowed: true, .. } => Answer::Allowed,
            Decision { reason: Reason::Banned, .. } => Answer::Banned,
            Decision { never: true, .. } => Answer::Never,
            _ => Answer::Denied,
        }
    }

    /// Its position in [`Answer::ALL`].
    #[inline]
    const fn index(self) -> usize {
        match self {
            Answer::Allowed => 0,
            Answer::Denied => 1,
            Answer::Never => 2,
            Answer::ShadowDenied => 3,
            Answer::Error => 4,
            Answer::Banned => 5,
        }
    }
}

/// One value for each category of answers.
type PerAnswer<T> = [T; Answer::ALL.len()];

/// The decisions that one meter has counted under one policy, before they are added to the shared
/// counters.
#[derive(Debug, Default)]
pub(crate) struct BatchCounters {
    answers: PerAnswer<u64>,
    degraded_allowed: u64,
    degraded_denied: u64,
}

impl BatchCounters {
    /// Counts a decision. Returns the value of the label `answer`.
    #[inline]
    pub(crate) fn count(&mut self, decision: &Decision) -> &'static str {
        if decision.degraded {
            let degraded = match decision.allowed {
                true => &mut self.degraded_allowed,
                false => &mut self.degraded_denied,
            };
            *degraded += 1;
        }
        let answer = Answer::new(decision);
        self.answers[answer.index()] += 1;
        answer.as_str()
    }

    /// Counts a denial of a client that the protocol admits. Returns the value of the label `answer`.
    #[cold]
    pub(crate) fn count_shadow_denial(&mut self, decision: &Decision) -> &'static str {
        self.degraded_allowed += u64::from(decision.degraded);
        self.answers[Answer::ShadowDenied.index()] += 1;
        Answer::ShadowDenied.as_str()
    }

    /// Counts a check without a decision. Returns the value of the label `answer`.
    pub(crate) fn count_error(&mut self) -> &'static str {
        self.answers[Answer::Error.index()] += 1;
        Answer::Error.as_str()
    }
}

/// The shared counters of one policy.
#[derive(Debug)]
pub(crate) struct PolicyCounters {
    pub(crate) policy: Box<str>,
    surfaces: [PerAnswer<Counter>; Surface::ALL.len()],
    degraded_allowed: Counter,
    degraded_denied: Counter,
    /// When the next denial may be logged, in µs.
    next_denial_line: AtomicU64,
}

/// The minimum time between two lines about denials of a policy.
const DENIAL_INTERVAL: Micros = Micros::from_secs(10);

impl PolicyCounters {
    fn new(policy: &str) -> Arc<Self> {
        Arc::new(PolicyCounters {
            policy: policy.into(),
            surfaces: Default::default(),
            degraded_allowed: Counter::default(),
            degraded_denied: Counter::default(),
            next_denial_line: AtomicU64::default(),
        })
    }

    /// Whether a denial at this time may be logged. Nearly all denials cost one load.
    #[inline]
    pub(crate) fn may_log_denial(&self, now: Timestamp) -> bool {
        let next = self.next_denial_line.load(Ordering::Relaxed);
        if now.as_micros() < next {
            return false;
        }
        let later = now.saturating_add(DENIAL_INTERVAL).as_micros();
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        self.next_denial_line.compare_exchange(next, later, success, failure).is_ok()
    }

    fn surface(&self, surface: Surface) -> &PerAnswer<Counter> {
        let [http, forward_auth, envoy, resp] = &self.surfaces;
        match surface {
            Surface::Http => http,
            Surface::ForwardAuth => forward_auth,
            Surface::Envoy => envoy,
            Surface::Resp => resp,
        }
    }

    /// Adds the counts of a batch.
    pub(crate) fn add(&self, surface: Surface, batch: &BatchCounters) {
        for (counter, count) in self.surface(surface).iter().zip(batch.answers) {
            if count > 0 {
                counter.add(count);
            }
        }
        if batch.degraded_allowed + batch.degraded_denied > 0 {
            self.degraded_allowed.add(batch.degraded_allowed);
            self.degraded_denied.add(batch.degraded_denied);
        }
    }

    fn counts(&self) -> PolicyCounts {
        PolicyCounts {
            policy: self.policy.clone(),
            surfaces: Surface::ALL.map(|surface| {
                let counters = self.surface(surface);
                (
                    surface,
                    Answer::ALL.map(|answer| (answer.as_str(), counters[answer.index()].get())),
                )
            }),
            degraded: [
                ("allowed", self.degraded_allowed.get()),
                ("denied", self.degraded_denied.get()),
            ],
        }
    }
}

/// The counts of one policy.
#[derive(Clone, Debug)]
pub struct PolicyCounts {
    /// Its name, as the label `policy` has it.
    pub policy: Box<str>,
    /// The number of decisions by surface and answer.
    pub surfaces: [(Surface, [(&'static str, u64); Answer::ALL.len()]); Surface::ALL.len()],
    /// The number of decisions without the store, by answer.
    pub degraded: [(&'static str, u64); 2],
}

/// The counters of all policies. A lookup takes no lock and does not allocate; clones share the
/// counters.
#[derive(Clone, Debug)]
pub(crate) struct PolicyCounterTable(Arc<Table>);

#[derive(Debug)]
struct Table {
    /// Sorted by the hash of the name.
    named: Box<[(u64, Arc<PolicyCounters>)]>,
    other: Arc<PolicyCounters>,
    inline: Arc<PolicyCounters>,
    throttle: Arc<PolicyCounters>,
}

impl Default for PolicyCounterTable {
    fn default() -> Self {
        PolicyCounterTable(Arc::new(Table {
            named: Box::default(),
            other: PolicyCounters::new(OTHER),
            inline: PolicyCounters::new(INLINE),
            throttle: PolicyCounters::new(THROTTLE),
        }))
    }
}

impl PolicyCounterTable {
    /// A table for these policies, up to a bound. Policies of this table keep their counts.
    pub(super) fn with_names<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let known: HashMap<&str, _> =
            self.0.named.iter().map(|(_, counters)| (&*counters.policy, counters)).collect();
        let mut named: Vec<_> = names
            .into_iter()
            .take(MAX_NAMES)
            .map(|name| {
                let counters = known.get(name).map(|counters| Arc::clone(counters));
                (Policy::hash_of_name(name), counters.unwrap_or_else(|| PolicyCounters::new(name)))
            })
            .collect();
        named.sort_unstable_by_key(|(hash, _)| *hash);
        PolicyCounterTable(Arc::new(Table {
            named: named.into(),
            other: Arc::clone(&self.0.other),
            inline: Arc::clone(&self.0.inline),
            throttle: Arc::clone(&self.0.throttle),
        }))
    }

    /// The counters of a policy.
    #[inline]
    pub(crate) fn get(&self, policy: &Policy) -> &PolicyCounters {
        let hash = policy.name_hash();
        let index = self.0.named.binary_search_by_key(&hash, |(hash, _)| *hash);
        let found = index.ok().and_then(|index| self.0.named.get(index));
        match found.map(|(_, counters)| &**counters) {
            Some(counters) if &*counters.policy == policy.name() => counters,
            _ if policy.name().starts_with('=') => &self.0.inline,
            _ if policy.name() == THROTTLE => &self.0.throttle,
            _ => &self.0.other,
        }
    }

    /// All counts, by name.
    pub(super) fn counts(&self) -> Vec<PolicyCounts> {
        let Table { named, other, inline, throttle } = &*self.0;
        let named = named.iter().map(|(_, counters)| counters);
        let mut all: Vec<_> =
            named.chain([other, inline, throttle]).map(|counters| counters.counts()).collect();
        all.sort_unstable_by(|one, other| one.policy.cmp(&other.policy));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts a decision. Returns the value of the label `answer`.
    fn count(counters: &PolicyCounters, surface: Surface, decision: &Decision) -> &'static str {
        let mut batch = BatchCounters::default();
        let answer = batch.count(decision);
        counters.add(surface, &batch);
        answer
    }

    fn label(table: &PolicyCounterTable, name: &str, limit: &str) -> Box<str> {
        let policy = match name {
            "" => limit.parse().unwrap(),
            _ => tollgate::Policies::new().define(name, limit).unwrap().clone(),
        };
        table.get(&policy).policy.clone()
    }

    #[test]
    fn a_policy_is_counted_under_its_name_up_to_a_bound() {
        let names: Vec<_> = (0..1_500).map(|n| format!("p{n:04}")).collect();
        let table = PolicyCounterTable::default().with_names(names.iter().map(|name| &**name));
        assert_eq!(table.0.named.len(), MAX_NAMES);
        for (name, expected) in
            [("p0000", "p0000"), ("p0999", "p0999"), ("p1000", OTHER), ("gone", OTHER)]
        {
            assert_eq!(&*label(&table, name, "1/s"), expected, "{name}");
        }
        assert_eq!(&*label(&table, "", "7/min log"), INLINE);
    }

    #[test]
    fn a_reload_keeps_the_counts() {
        let before = PolicyCounterTable::default().with_names(["a", "b"]);
        let policy = &Policy::new("b", ["1/s".parse().unwrap()]).unwrap();
        let decision = Decision::default();
        count(before.get(policy), Surface::Http, &decision);
        let after = before.with_names(["b", "c"]);
        // A request that began before the reload updates the same counters.
        count(before.get(policy), Surface::Http, &decision);
        let (_, answers) = after.get(policy).counts().surfaces[0];
        assert_eq!(answers[1], ("denied", 2));
        let names: Vec<_> = after.counts().into_iter().map(|counts| counts.policy).collect();
        assert_eq!(names, [THROTTLE, INLINE, OTHER, "b", "c"].map(Box::<str>::from));
    }

    #[test]
    fn each_category_of_answers_has_its_own_label() {
        let mut allowed = Decision::default();
        allowed.allowed = true;
        let mut never = Decision::default();
        never.never = true;
        let mut banned = Decision::default();
        banned.reason = Reason::Banned;
        let limiter = tollgate::MemoryLimiter::new();
        let shadow: Policy = "1/d log".parse().unwrap();
        let shadow = shadow.shadow();
        let key = tollgate::Key::new("k").unwrap();
        let first = limiter.check(&shadow, key);
        let second = limiter.check(&shadow, key);
        for (decision, label) in [
            (&allowed, "allowed"),
            (&Decision::default(), "denied"),
            (&never, "never"),
            (&first, "allowed"),
            (&second, "shadow_denied"),
            (&banned, "banned"),
        ] {
            let counters = PolicyCounters::new("p");
            assert_eq!(count(&counters, Surface::ForwardAuth, decision), label);
            for (surface, answers) in counters.counts().surfaces {
                let counted: Vec<_> = answers.into_iter().filter(|count| count.1 > 0).collect();
                let expected: &[_] =
                    if surface == Surface::ForwardAuth { &[(label, 1)] } else { &[] };
                assert_eq!(counted, expected);
            }
        }
    }
}
