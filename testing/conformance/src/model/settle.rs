//! Settlements: the actual cost of a check in place of the estimate that it charged.

use tollgate_algorithms::{Check, Limit, Request, RequestError};

use super::expected::Expected;
use super::limit::LimitUsage;
use super::number::{Int, bits64};
use super::request_ids::Charges;
use super::shape::Shape;
use super::{Answer, Model, ModelError, place};

/// What one check was charged.
struct Charge {
    cost: Int,
    time: Int,
    /// When each limit would have recovered; `None` if the policy has other limits now.
    recovers_at: Option<Vec<Int>>,
}

impl Model {
    pub(super) fn settle(
        &mut self,
        request: &Request<'_>,
        now: Int,
    ) -> Result<Vec<Expected>, ModelError> {
        let charged = match self.memory.charges(request, now)? {
            Charges::Settled(answer) => return Ok(answer),
            Charges::Unsettled(charged) => charged,
        };
        let is_other_lease = |(check, (cost, ..)): (&Check<'_>, &(u64, _, _))| {
            check.policy.limits().iter().any(Limit::is_concurrent) && check.cost.get() != *cost
        };
        if request.checks.iter().zip(&charged).any(is_other_lease) {
            return Err(RequestError::LeaseCost.into());
        }
        let mut answers = vec![Expected::default(); request.checks.len()];
        for (first, check) in request.checks.iter().enumerate() {
            let is_same = |index: &usize| place(&request.checks[*index]) == place(check);
            let members: Vec<_> = (0..request.checks.len()).filter(is_same).collect();
            if members[0] != first {
                continue;
            }
            let (_, answer, limits) = &charged[first];
            let cost = members.iter().map(|member| Int::from(charged[*member].0)).sum();
            let charge = charge(check, cost, answer, limits);
            let actual =
                members.iter().map(|member| Int::from(request.checks[*member].cost.get())).sum();
            let settled = self.settle_one(check, actual, charge, now)?;
            let mut left = settled.granted;
            for (index, member) in members.iter().enumerate() {
                let is_last = index + 1 == members.len();
                let own = request.checks[*member].cost.get();
                let granted = if is_last { left } else { left.min(own) };
                left -= granted;
                answers[*member] = Expected { granted, ..settled.clone() };
            }
        }
        self.memory.settle(request, &answers);
        Ok(answers)
    }

    fn settle_one(
        &mut self,
        check: &Check<'_>,
        actual: Int,
        charge: Option<Charge>,
        now: Int,
    ) -> Answer {
        let Some(Charge { cost, time, recovers_at }) = charge else {
            return self.change(check, now, |_| 0);
        };
        if actual > cost {
            let answer = self.change(check, now, |limit| limit.penalize(actual - cost))?;
            return Ok(Expected { granted: bits64(cost) + answer.granted, ..answer });
        }
        let mut limits = self.read(check, now)?;
        let mut back = 0;
        for (index, limit) in limits.iter_mut().enumerate() {
            let recovers_at = recovers_at.as_ref().map(|all| all[index]);
            back = back.max(limit.refund_undrained(cost - actual, time, recovers_at));
        }
        let changed = limits.iter().any(|limit| limit.touched);
        self.write(check, &limits, now);
        let granted = bits64(cost - back);
        Ok(Expected { granted, changed, ..self.change(check, now, |_| 0)? })
    }
}

/// What a check was charged; `None` if its shadow policy or a block denied it, or if it held its lease already.
fn charge(check: &Check<'_>, cost: Int, answer: &Expected, limits: &[Limit]) -> Option<Charge> {
    let is_denied = answer.limits.iter().any(|limit| !limit.allowed);
    let is_blocked = cost > 0 && !answer.changed;
    if answer.replayed || (answer.shadow && is_denied) || is_blocked {
        return None;
    }
    let time = Int::from(answer.time.as_micros());
    let ends = answer.limits.iter().map(|limit| time + Int::from(limit.reset_after.get()));
    let recovers_at = (limits == check.policy.limits()).then(|| ends.collect());
    Some(Charge { cost, time, recovers_at })
}

impl LimitUsage {
    /// Refunds a charge of this time. Buckets and queues refund no more than would be left of it and of
    /// earlier charges.
    fn refund_undrained(&mut self, units: Int, charged: Int, recovers_at: Option<Int>) -> Int {
        let time = self.time();
        let Shape::TokenBucket(bucket) = &mut self.shape else {
            return self.refund(units, Some(charged));
        };
        let undrained = recovers_at.map_or(0, |end| bucket.drained_until(time, end));
        let parts = (units * bucket.parts).min(undrained);
        let back = bucket.refund(time, parts, Some(charged));
        let per_unit = bucket.parts;
        self.touched |= back > 0;
        back / per_unit
    }
}
