//! What was decided, counted for each policy.

use std::collections::HashMap;
use std::sync::Arc;

use tollgate::{Decision, Policy};

use super::counter::Counter;

/// Where a decision was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// `/v1`.
    Http,
    /// A gateway's question about a request of its own.
    ForwardAuth,
    /// Envoy's rate limit service.
    Envoy,
    /// A client of Redis.
    Resp,
}

impl Surface {
    pub(super) const ALL: [Surface; 4] =
        [Surface::Http, Surface::ForwardAuth, Surface::Envoy, Surface::Resp];

    /// The word that stands for it in labels.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Surface::Http => "http",
            Surface::ForwardAuth => "forward_auth",
            Surface::Envoy => "envoy",
            Surface::Resp => "resp",
        }
    }
}

/// The most policies that are counted by their names.
const MAX_NAMES: usize = 1_000;
/// What the others are counted under, and limits that were given in place of a policy. No policy
/// has such a name: one begins with a letter.
const OTHER: &str = "_other";
const INLINE: &str = "_inline";
/// What `CL.THROTTLE` decides is counted under the policy that stands for it.
const THROTTLE: &str = "@throttle";

/// What was answered on one surface.
#[derive(Debug, Default)]
pub(super) struct Answers {
    allowed: Counter,
    denied: Counter,
    never: Counter,
    shadow_denied: Counter,
    error: Counter,
}

impl Answers {
    fn of(&self, decision: &Decision) -> (&'static str, &Counter) {
        match decision {
            decision if decision.is_shadow_denial() => ("shadow_denied", &self.shadow_denied),
            Decision { allowed: true, .. } => ("allowed", &self.allowed),
            Decision { never: true, .. } => ("never", &self.never),
            _ => ("denied", &self.denied),
        }
    }

    fn add(&self, sums: &Sums) {
        for (counter, sum) in [
            (&self.allowed, sums.allowed),
            (&self.denied, sums.denied),
            (&self.never, sums.never),
            (&self.shadow_denied, sums.shadow_denied),
            (&self.error, sums.error),
        ] {
            if sum > 0 {
                counter.add(sum);
            }
        }
    }

    /// Every answer by its word; nothing if there was none yet.
    pub(super) fn counts(&self) -> Option<[(&'static str, u64); 5]> {
        let counts = [
            ("allowed", self.allowed.get()),
            ("denied", self.denied.get()),
            ("never", self.never.get()),
            ("shadow_denied", self.shadow_denied.get()),
            ("error", self.error.get()),
        ];
        counts.iter().any(|(_, count)| *count > 0).then_some(counts)
    }
}

/// What one connection has counted of one policy, before it adds that to what others count.
#[derive(Debug, Default)]
pub(super) struct Sums {
    allowed: u64,
    denied: u64,
    never: u64,
    shadow_denied: u64,
    error: u64,
    degraded_allowed: u64,
    degraded_denied: u64,
}

impl Sums {
    /// Counts a decision; the word that stands for it in labels.
    #[inline]
    pub(super) fn count(&mut self, decision: &Decision) -> &'static str {
        if decision.degraded {
            let degraded = if decision.allowed {
                &mut self.degraded_allowed
            } else {
                &mut self.degraded_denied
            };
            *degraded += 1;
        }
        let (word, sum) = match decision {
            decision if decision.is_shadow_denial() => ("shadow_denied", &mut self.shadow_denied),
            Decision { allowed: true, .. } => ("allowed", &mut self.allowed),
            Decision { never: true, .. } => ("never", &mut self.never),
            _ => ("denied", &mut self.denied),
        };
        *sum += 1;
        word
    }

    /// Counts a check that got no decision; the word that stands for that in labels.
    pub(super) fn count_error(&mut self) -> &'static str {
        self.error += 1;
        "error"
    }
}

/// What was decided under one policy.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(super) policy: Box<str>,
    answers: [Answers; Surface::ALL.len()],
    degraded_allowed: Counter,
    degraded_denied: Counter,
}

impl Tally {
    fn new(policy: &str) -> Arc<Self> {
        Arc::new(Tally {
            policy: policy.into(),
            answers: Default::default(),
            degraded_allowed: Counter::default(),
            degraded_denied: Counter::default(),
        })
    }

    pub(super) fn answers(&self, surface: Surface) -> &Answers {
        let [http, forward_auth, envoy, resp] = &self.answers;
        match surface {
            Surface::Http => http,
            Surface::ForwardAuth => forward_auth,
            Surface::Envoy => envoy,
            Surface::Resp => resp,
        }
    }

    /// Counts a decision; the word that stands for it in labels.
    #[inline]
    pub(super) fn count(&self, surface: Surface, decision: &Decision) -> &'static str {
        let (word, counter) = self.answers(surface).of(decision);
        counter.count();
        if decision.degraded {
            let degraded =
                if decision.allowed { &self.degraded_allowed } else { &self.degraded_denied };
            degraded.count();
        }
        word
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&self, surface: Surface, sums: &Sums) {
        self.answers(surface).add(sums);
        if sums.degraded_allowed + sums.degraded_denied > 0 {
            self.degraded_allowed.add(sums.degraded_allowed);
            self.degraded_denied.add(sums.degraded_denied);
        }
    }

    /// Counts a check that got no decision; the word that stands for that in labels.
    pub(super) fn count_error(&self, surface: Surface) -> &'static str {
        self.answers(surface).error.count();
        "error"
    }

    /// As [`Answers::counts`], of decisions that the store had no part in.
    pub(super) fn degraded(&self) -> Option<[(&'static str, u64); 2]> {
        let counts =
            [("allowed", self.degraded_allowed.get()), ("denied", self.degraded_denied.get())];
        counts.iter().any(|(_, count)| *count > 0).then_some(counts)
    }
}

/// The tallies of all policies, found without an allocation or a lock. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Tallies(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// By the hash of the name, ascending.
    own: Box<[(u64, Arc<Tally>)]>,
    other: Arc<Tally>,
    inline: Arc<Tally>,
    throttle: Arc<Tally>,
}

impl Default for Tallies {
    fn default() -> Self {
        let (other, inline) = (Tally::new(OTHER), Tally::new(INLINE));
        let (own, throttle) = (Box::default(), Tally::new(THROTTLE));
        Tallies(Arc::new(Inner { own, other, inline, throttle }))
    }
}

impl Tallies {
    /// Those of the policies that hold from now on: the first of them in the order of their names
    /// are counted each by its own, and those known already go on where they were.
    pub(super) fn followed_by<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Self {
        let known: HashMap<&str, _> = self.0.own.iter().map(|(_, x)| (&*x.policy, x)).collect();
        let tally = |name| {
            let tally = known.get(name).map(|x| Arc::clone(x));
            (Policy::hash_of_name(name), tally.unwrap_or_else(|| Tally::new(name)))
        };
        let mut own: Vec<_> = names.into_iter().take(MAX_NAMES).map(tally).collect();
        own.sort_unstable_by_key(|(hash, _)| *hash);
        let (other, inline) = (Arc::clone(&self.0.other), Arc::clone(&self.0.inline));
        let (own, throttle) = (own.into(), Arc::clone(&self.0.throttle));
        Tallies(Arc::new(Inner { own, other, inline, throttle }))
    }

    /// The policy's tally.
    #[inline]
    pub(super) fn of(&self, policy: &Policy) -> &Tally {
        let hash = policy.name_hash();
        let found = self.0.own.binary_search_by_key(&hash, |(hash, _)| *hash);
        let found = found.ok().and_then(|at| self.0.own.get(at)).map(|(_, x)| &**x);
        match found.filter(|found| &*found.policy == policy.name()) {
            Some(found) => found,
            None if policy.name().starts_with('=') => &self.0.inline,
            None if policy.name() == THROTTLE => &self.0.throttle,
            None => &self.0.other,
        }
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> Vec<&Tally> {
        let Inner { own, other, inline, throttle } = &*self.0;
        let mut all: Vec<_> =
            own.iter().map(|(_, x)| &**x).chain([&**other, &**inline, &**throttle]).collect();
        all.sort_unstable_by_key(|x| &*x.policy);
        all
    }

    /// How many policies are counted by their names.
    #[cfg(test)]
    fn names(&self) -> usize {
        self.0.own.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(tallies: &Tallies, name: &str, limit: &str) -> Box<str> {
        let policy = match name {
            "" => limit.parse().unwrap(),
            _ => tollgate::Policies::new().define(name, limit).unwrap().clone(),
        };
        tallies.of(&policy).policy.clone()
    }

    #[test]
    fn a_policy_is_counted_by_its_name_up_to_a_bound() {
        let many: Vec<_> = (0..1_500).map(|n| format!("p{n:04}")).collect();
        let tallies = Tallies::default().followed_by(many.iter().map(|many| &**many));
        assert_eq!(tallies.names(), MAX_NAMES);
        for (name, counted_as) in
            [("p0000", "p0000"), ("p0999", "p0999"), ("p1000", OTHER), ("gone", OTHER)]
        {
            assert_eq!(&*counted(&tallies, name, "1/s"), counted_as, "{name}");
        }
        assert_eq!(&*counted(&tallies, "", "7/min log"), INLINE);
    }

    #[test]
    fn a_reload_keeps_what_was_counted() {
        let before = Tallies::default().followed_by(["a", "b"]);
        let policy = &Policy::new("b", ["1/s".parse().unwrap()]).unwrap();
        let decision = Decision::default();
        before.of(policy).count(Surface::Http, &decision);
        let after = before.followed_by(["b", "c"]);
        // One that began before the reload counts into the same.
        before.of(policy).count(Surface::Http, &decision);
        let counts = after.of(policy).answers(Surface::Http).counts().unwrap();
        assert_eq!(counts[1], ("denied", 2));
        let names: Vec<_> = after.all().iter().map(|x| x.policy.clone()).collect();
        assert_eq!(names, [THROTTLE, INLINE, OTHER, "b", "c"].map(Box::<str>::from));
    }

    #[test]
    fn each_answer_has_a_word_of_its_own() {
        let mut allowed = Decision::default();
        allowed.allowed = true;
        let mut never = Decision::default();
        never.never = true;
        let limiter = tollgate::MemoryLimiter::new();
        let shadow: Policy = "1/d log".parse().unwrap();
        let shadow = shadow.shadow();
        let key = tollgate::Key::new("k").unwrap();
        let first = limiter.check(&shadow, key);
        let second = limiter.check(&shadow, key);
        for (decision, word) in [
            (&allowed, "allowed"),
            (&Decision::default(), "denied"),
            (&never, "never"),
            (&first, "allowed"),
            (&second, "shadow_denied"),
        ] {
            let tally = Tally::new("p");
            assert_eq!(tally.count(Surface::ForwardAuth, decision), word);
            let counts = tally.answers(Surface::ForwardAuth).counts().unwrap();
            let counted: Vec<_> = counts.into_iter().filter(|count| count.1 > 0).collect();
            assert_eq!(counted, [(word, 1)]);
            assert!(tally.answers(Surface::Http).counts().is_none());
        }
    }
}
