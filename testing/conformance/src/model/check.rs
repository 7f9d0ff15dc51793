//! Check, peek, acquire and take: all limits of all checks are charged, or none.

use tollgate_algorithms::{Check, Id, Limit, LimitDecision};

use super::bans::{self, Record};
use super::describe::{decision, deny_banned, deny_blocked, micros, row};
use super::expected::Expected;
use super::key::Block;
use super::limit::LimitUsage;
use super::number::{Int, bits64};
use super::{Answer, Model, ModelError};

/// The checks of one policy and key, decided as one check of the summed cost.
struct Group<'a> {
    check: Check<'a>,
    cost: Int,
    /// The indexes of its checks in the request.
    members: Vec<usize>,
    /// The cost of the lease if the key holds it already.
    held: Option<Int>,
}

impl Group<'_> {
    fn is_concurrent(&self) -> bool {
        self.check.policy.limits().iter().any(Limit::is_concurrent)
    }

    /// Whether an admission acquires a lease. A check of cost 0 does not.
    fn acquires(&self) -> bool {
        self.is_concurrent() && self.cost > 0
    }
}

/// The decision about a group before anything is charged.
struct Judgment {
    /// The limits before the request.
    before: Vec<LimitUsage>,
    /// The limits after the request.
    after: Vec<LimitUsage>,
    block: Option<Block>,
    /// The denials of the key or its ban, before the request and after it.
    record: [Option<Record>; 2],
    /// The cost of the lease if the key holds it already.
    held: Option<Int>,
    allowed: bool,
    /// Whether the limits of the policy admit.
    fits: bool,
    /// Whether the denial is counted towards a ban.
    is_counted: bool,
    never: bool,
}

impl Judgment {
    /// Whether every check of the key is denied.
    fn is_locked_out(&self) -> bool {
        self.block.is_some() || self.record[0].is_some_and(|record| record.is_banned)
    }
}

/// How the request as a whole is decided.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) lease: Option<Id>,
    pub(super) is_peek: bool,
    pub(super) now: Int,
}

impl Model {
    /// Grants what remains, up to the cost. If nothing remains, it is a denied check of cost 1.
    pub(super) fn take(&mut self, check: &Check<'_>, now: Int) -> Answer {
        let limits = self.read(check, now)?;
        let remaining = limits.iter().map(LimitUsage::remaining).min().unwrap_or(0);
        let grant = remaining.min(Int::from(check.cost.get()));
        let group = Group { check: *check, cost: grant.max(1), members: vec![0], held: None };
        let run = Run { lease: None, is_peek: false, now };
        let mut answer = self.decide_together(&[&group], run)?.remove(0);
        answer.granted = if answer.allowed { bits64(grant) } else { 0 };
        Ok(answer)
    }

    /// Decides the enforced groups together, then each shadow group alone.
    pub(super) fn decide_all(
        &mut self,
        checks: &[Check<'_>],
        run: Run,
    ) -> Result<Vec<Expected>, ModelError> {
        let mut groups = grouped(checks);
        for group in &mut groups {
            group.held = self.held(group, run)?;
        }
        repeat_whole(&mut groups);
        let mut answers = vec![Expected::default(); checks.len()];
        let (shadows, main): (Vec<_>, Vec<_>) =
            groups.iter().partition(|group| group.check.policy.is_shadow());
        let alone = shadows.into_iter().map(|shadow| vec![shadow]);
        for together in std::iter::once(main).chain(alone) {
            let decided = self.decide_together(&together, run)?;
            for (group, expected) in together.iter().zip(decided) {
                for member in &group.members {
                    answers[*member] = with_own_cost(&expected, group, checks[*member].cost.get());
                }
            }
        }
        Ok(answers)
    }

    fn decide_together(
        &mut self,
        groups: &[&Group<'_>],
        run: Run,
    ) -> Result<Vec<Expected>, ModelError> {
        let mut judged = Vec::new();
        for group in groups {
            judged.push(self.judge(group, run)?);
        }
        let admitted = judged.iter().all(|judged| judged.allowed);
        let hopeless = judged
            .iter()
            .any(|judged| judged.never || (judged.is_locked_out() && judged.held.is_none()));
        for (group, judged) in groups.iter().zip(&mut judged) {
            if judged.held.is_none() {
                for limit in &mut judged.after {
                    if admitted {
                        limit.charge(group.cost, run.lease);
                    } else if !hopeless {
                        limit.charge_denied(group.cost);
                    }
                }
            }
            let is_own_denial = !admitted && !hopeless && judged.held.is_none() && !judged.fits;
            let counted = match is_own_denial && group.cost > 0 {
                true => self.after_denial(&group.check, run.now),
                false => None,
            };
            judged.record[1] = counted.or(judged.record[0]);
            judged.is_counted = counted.is_some();
            if !run.is_peek {
                self.write(&group.check, &judged.after, run.now);
                self.keep_record(&group.check, counted);
            }
        }
        let both = groups.iter().zip(&judged);
        Ok(both.map(|(group, judged)| judged.expected(group, admitted, run)).collect())
    }

    /// The cost of the lease if the key of the group already holds it.
    fn held(&self, group: &Group<'_>, run: Run) -> Result<Option<Int>, ModelError> {
        let Some(id) = run.lease.filter(|_| group.acquires()) else { return Ok(None) };
        Ok(self.read(&group.check, run.now)?.iter().find_map(|limit| limit.held(id)))
    }

    fn judge(&self, group: &Group<'_>, run: Run) -> Result<Judgment, ModelError> {
        let before = self.read(&group.check, run.now)?;
        let block = self.blocked(&group.check, run.now);
        let held = group.held;
        let fits = before.iter().all(|before| before.admits(group.cost));
        let record = self.record(&group.check, run.now);
        let is_banned = record.is_some_and(|record| record.is_banned);
        let admits = fits && block.is_none() && !is_banned;
        Ok(Judgment {
            allowed: admits || held.is_some(),
            never: held.is_none() && before.iter().any(|before| before.never(group.cost)),
            block,
            record: [record, record],
            fits,
            is_counted: false,
            after: before.clone(),
            before,
            held,
        })
    }
}

impl Judgment {
    fn expected(&self, group: &Group<'_>, admitted: bool, run: Run) -> Expected {
        let both = self.before.iter().zip(&self.after);
        let rows = both.map(|(before, after)| self.row(before, after, group.cost, admitted, run));
        let [known, after] = self.record;
        let reported = if run.is_peek { known } else { after };
        let mut expected = decision(rows.collect(), self.allowed, reported, self.block, run.now);
        if self.held.is_none() {
            deny_banned(&mut expected, known, run.now);
            if self.is_counted {
                bans::extend_retry(&mut expected, after, run.now);
            }
        }
        if let Some(block) = self.block.filter(|_| self.held.is_none()) {
            deny_blocked(&mut expected, block, run.now);
        }
        if admitted && self.held.is_none() {
            expected.delay = micros(self.before.iter().map(LimitUsage::delay).max().unwrap_or(0));
        }
        if (admitted || self.held.is_some()) && !run.is_peek {
            expected.granted = bits64(self.held.unwrap_or(group.cost));
            let takes_place = group.cost > 0 || self.held.is_some();
            expected.lease = run.lease.filter(|_| group.is_concurrent() && takes_place);
        }
        expected.replayed = self.held.is_some();
        let is_touched = self.is_counted || self.after.iter().any(|after| after.touched);
        expected.changed = !run.is_peek && is_touched;
        expected
    }

    fn row(
        &self,
        before: &LimitUsage,
        after: &LimitUsage,
        cost: Int,
        admitted: bool,
        run: Run,
    ) -> LimitDecision {
        let row = row(if run.is_peek { before } else { after });
        if self.held.is_some() {
            return row;
        }
        LimitDecision {
            allowed: before.admits(cost),
            never: before.never(cost),
            retry_after: if admitted { None } else { after.retry_after(cost).map(micros) },
            ..row
        }
    }
}

/// If all leases of a request are already held, the whole request is a repeat: checks of policies
/// without leases are not charged again either.
fn repeat_whole(groups: &mut [Group<'_>]) {
    let mut acquiring = groups.iter().filter(|group| group.acquires()).peekable();
    if acquiring.peek().is_some() && acquiring.all(|acquiring| acquiring.held.is_some()) {
        for group in groups {
            group.held = group.held.or(Some(group.cost));
        }
    }
}

/// Groups the checks by policy and key, in the order of the first check of each group.
fn grouped<'a>(checks: &[Check<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (index, check) in checks.iter().enumerate() {
        let same = |group: &&mut Group<'_>| {
            group.check.policy.name() == check.policy.name() && group.check.key == check.key
        };
        let cost = Int::from(check.cost.get());
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.cost += cost;
                group.members.push(index);
            }
            None => groups.push(Group { check: *check, cost, members: vec![index], held: None }),
        }
    }
    groups
}

/// The decision of a group for one of its checks, which is granted its own cost.
fn with_own_cost(expected: &Expected, group: &Group<'_>, cost: u64) -> Expected {
    let mut own = expected.clone();
    if group.members.len() > 1 && own.granted > 0 {
        own.granted = cost;
    }
    own
}
