//! The operations on one key: reserve and cancel, refund, penalize, backfill, reset, block, renew and
//! release.

use tollgate_algorithms::{Check, Id, LimitDecision};

use super::bans;
use super::describe::{decision, deny_banned, deny_blocked, micros, row};
use super::expected::Expected;
use super::key::{Block, Reservation};
use super::leases::LeaseSet;
use super::limit::LimitUsage;
use super::number::{Int, bits64};
use super::shape::Shape;
use super::{Answer, Model, place};

impl Model {
    pub(super) fn reserve(&mut self, check: &Check<'_>, id: Id, max_wait: Int, now: Int) -> Answer {
        if let Some(reservation) = self.reservation(check, id, now) {
            return self.repeat_reservation(check, id, &reservation, now);
        }
        let mut limits = self.read(check, now)?;
        let (block, known) = (self.blocked(check, now), self.record(check, now));
        let is_locked_out = block.is_some() || self.banned(check, now).is_some();
        let cost = Int::from(check.cost.get());
        let waits: Vec<_> = limits.iter().map(|limit| limit.reserves(cost, max_wait)).collect();
        let accepted = waits.iter().all(Option::is_some) && !is_locked_out;
        let verdicts: Vec<LimitDecision> =
            limits.iter().map(|limit| reserve_row(limit, cost, max_wait)).collect();
        let delay = waits.into_iter().flatten().max().unwrap_or(0);
        if accepted {
            limits.iter_mut().for_each(|limit| limit.charge(cost, None));
            self.write(check, &limits, now);
            if cost > 0 && delay > 0 {
                self.keep_reservation(check, id, &limits, now + delay);
            }
        }
        let is_counted = !accepted
            && !is_locked_out
            && cost > 0
            && !limits.iter().any(|limit| limit.never(cost));
        let counted = if is_counted { self.after_denial(check, now) } else { None };
        self.keep_record(check, counted);
        let after = counted.or(known);
        let rows = limits.iter().zip(verdicts).map(|(limit, verdict)| {
            let LimitDecision { allowed, never, retry_after, .. } = verdict;
            LimitDecision { allowed, never, retry_after, ..row(limit) }
        });
        let mut expected = decision(rows.collect(), accepted, after, block, now);
        deny_banned(&mut expected, known, now);
        if counted.is_some() {
            bans::extend_retry(&mut expected, after, now);
            expected.changed = true;
        }
        if let Some(block) = block {
            deny_blocked(&mut expected, block, now);
        }
        if accepted {
            expected.delay = micros(delay);
            expected.granted = check.cost.get();
            expected.changed = limits.iter().any(|limit| limit.touched);
            expected.reservation = Some(id);
        }
        Ok(expected)
    }

    fn keep_reservation(&mut self, check: &Check<'_>, id: Id, limits: &[LimitUsage], acts_at: Int) {
        let marks = limits.iter().map(|limit| (limit.identity, limit.shape.clone())).collect();
        let cost = Int::from(check.cost.get());
        let made_under = check.policy.limits().to_vec();
        let reservation = Reservation { cost, acts_at, lapsed: false, made_under, marks };
        self.keys.entry(place(check)).or_default().reservations.insert(id, reservation);
    }

    /// The decision about a reservation whose id the key already holds.
    fn repeat_reservation(
        &self,
        check: &Check<'_>,
        id: Id,
        reservation: &Reservation,
        now: Int,
    ) -> Answer {
        Ok(Expected {
            delay: micros(reservation.acts_at - now),
            granted: bits64(reservation.cost),
            reservation: Some(id),
            replayed: true,
            ..self.settled(check, now)?
        })
    }

    pub(super) fn cancel(&mut self, check: &Check<'_>, id: Id, now: Int) -> Answer {
        let mut limits = self.read(check, now)?;
        let Some(reservation) = self.reservation(check, id, now) else {
            return Ok(Expected { reservation: Some(id), ..self.settled(check, now)? });
        };
        self.keys.entry(place(check)).or_default().reservations.remove(&id);
        let back = limits.iter_mut().map(|limit| {
            let mark = reservation.marks.get(&limit.identity);
            mark.map_or(0, |mark| limit.cancel(reservation.cost, mark))
        });
        let granted = bits64(back.max().unwrap_or(0));
        self.write(check, &limits, now);
        let settled = self.settled(check, now)?;
        Ok(Expected { granted, changed: true, reservation: Some(id), ..settled })
    }

    /// Changes each limit separately; granted is the largest change.
    pub(super) fn change(
        &mut self,
        check: &Check<'_>,
        now: Int,
        change: impl Fn(&mut LimitUsage) -> Int,
    ) -> Answer {
        let mut limits = self.read(check, now)?;
        let granted = bits64(limits.iter_mut().map(change).max().unwrap_or(0));
        let changed = limits.iter().any(|limit| limit.touched);
        self.write(check, &limits, now);
        Ok(Expected { granted, changed, ..self.settled(check, now)? })
    }

    /// Charges one limit a cost that was admitted at another time.
    pub(super) fn backfill(
        &mut self,
        check: &Check<'_>,
        index: usize,
        admitted: Int,
        now: Int,
    ) -> Answer {
        let mut limits = self.read(check, now)?;
        let charged = limits[index].backfill(Int::from(check.cost.get()), admitted);
        self.write(check, &limits, now);
        let (granted, changed) = (bits64(charged), charged > 0);
        Ok(Expected { granted, changed, ..self.settled(check, now)? })
    }

    pub(super) fn reset(&mut self, check: &Check<'_>, now: Int) -> Answer {
        let is_used = self.keys.remove(&place(check)).is_some_and(|key| key.is_used(now));
        let ban = self.bans.remove(&place(check));
        let changed = is_used || ban.is_some_and(|ban| ban.is_open(now));
        Ok(Expected { changed, ..self.settled(check, now)? })
    }

    pub(super) fn block(&mut self, check: &Check<'_>, span: Option<Int>, now: Int) -> Answer {
        let before = self.blocked(check, now);
        self.blocks.insert(place(check), Block { end: span.map(|span| now + span), lapsed: false });
        let changed = before != self.blocked(check, now);
        Ok(Expected { changed, ..self.settled(check, now)? })
    }

    pub(super) fn unblock(&mut self, check: &Check<'_>, now: Int) -> Answer {
        let changed = self.blocked(check, now).is_some() | self.lift_ban(check, now);
        self.blocks.remove(&place(check));
        Ok(Expected { changed, ..self.settled(check, now)? })
    }

    /// Changes a lease in every concurrent limit that holds it; granted is its cost.
    pub(super) fn change_lease(
        &mut self,
        check: &Check<'_>,
        lease: Id,
        now: Int,
        change: impl Fn(&mut LeaseSet, Id, Int) -> bool,
    ) -> Answer {
        let mut limits = self.read(check, now)?;
        let held = limits.iter().filter_map(|limit| limit.held(lease)).max();
        for limit in &mut limits {
            let time = limit.time();
            if let Shape::LeaseSet(leases) = &mut limit.shape {
                limit.touched |= change(leases, lease, time);
            }
        }
        let granted = bits64(held.unwrap_or(0));
        self.write(check, &limits, now);
        let settled = self.settled(check, now)?;
        Ok(Expected { granted, changed: held.is_some(), lease: Some(lease), ..settled })
    }

    /// The decision that reports the state after an operation.
    fn settled(&self, check: &Check<'_>, now: Int) -> Answer {
        let rows = self.read(check, now)?.iter().map(row).collect();
        Ok(decision(rows, true, self.record(check, now), self.blocked(check, now), now))
    }
}

/// The decision of a limit about a reservation.
fn reserve_row(limit: &LimitUsage, cost: Int, max_wait: Int) -> LimitDecision {
    LimitDecision {
        allowed: limit.reserves(cost, max_wait).is_some(),
        never: limit.never(cost),
        retry_after: limit.reserve_retry_after(cost, max_wait).map(micros),
        ..LimitDecision::default()
    }
}

impl LimitUsage {
    /// The cost of a lease that is held here.
    pub(super) fn held(&self, id: Id) -> Option<Int> {
        match &self.shape {
            Shape::LeaseSet(leases) => leases.held(id, self.time()),
            _ => None,
        }
    }
}
