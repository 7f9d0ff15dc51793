//! Leases and reservations, compared with a list of those that were granted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_algorithms::{Id, Kind, Limit, Micros, Operation, Policy, Spec, Timestamp};

use super::play::{decide, single_answer};
use super::player::{Player, START, TestRequest};
use super::runner::{FailureReason, Outcome, Plan, run};
use super::trace::{Step, lease_steps, reservation_steps};
use crate::model::Expected;
use crate::system::SystemUnderTest;

/// Leases by id, with their cost and end.
#[derive(Debug, Default)]
struct HeldLeases(BTreeMap<Id, (u64, Timestamp)>);

impl HeldLeases {
    fn places(&self, now: Timestamp) -> u64 {
        self.0.values().filter(|(_, end)| now < *end).map(|(cost, _)| cost).sum()
    }

    fn holds(&self, id: Id, now: Timestamp) -> bool {
        self.0.get(&id).is_some_and(|(_, end)| now < *end)
    }

    /// Updates the list if it agrees with the answer.
    fn enter(
        &mut self,
        request: &TestRequest,
        answer: &Expected,
        limit: &Limit,
    ) -> Result<(), FailureReason> {
        let (now, cost) = (request.time, request.checks[0].2.get());
        let end = now.saturating_add(limit.spec().window);
        let right = match request.operation {
            Operation::Acquire { lease } if self.holds(lease, now) && cost > 0 => answer.replayed,
            Operation::Acquire { lease } => {
                let fits = self.places(now) + cost <= limit.capacity();
                if answer.allowed && cost > 0 {
                    self.0.insert(lease, (cost, end));
                }
                answer.allowed == fits && !answer.replayed
            }
            Operation::Renew { lease } => {
                let held = self.holds(lease, now);
                if let Some(entry) = self.0.get_mut(&lease).filter(|_| held) {
                    entry.1 = end;
                }
                answer.changed == held
            }
            Operation::Release { lease } => {
                let held = self.holds(lease, now);
                self.0.remove(&lease);
                answer.changed == held
            }
            _ => true,
        };
        let remaining = limit.capacity().checked_sub(self.places(now));
        if right && remaining == Some(answer.remaining) {
            Ok(())
        } else {
            Err(format!("{answer:?}"))
        }
    }
}

/// At most as many leases are held as there are places. A release frees its own lease, once. A
/// renewal extends a lease from now, unless it has expired.
pub fn leases_match_ledger(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let cases = (1_u64..9, 1_u64..40, lease_steps());
    run(plan, &cases, |(count, ms, steps), coverage| {
        let spec = Spec::new(count, Micros::from_millis(ms), Kind::Concurrent);
        let (limit, policy) = build(spec)?;
        let mut held = HeldLeases::default();
        play_each(system, &policy, &steps, |request, answer| {
            match request.operation {
                Operation::Acquire { .. } => coverage.answer(std::slice::from_ref(answer)),
                operation => {
                    coverage.count(if answer.changed { "changed" } else { operation.as_str() })
                }
            }
            held.enter(request, answer, &limit)
        })
    })
}

/// A reservation acts at its reported time. Before that time it can be cancelled once, which refunds
/// at most its cost.
pub fn reservations_match_ledger(system: &mut impl SystemUnderTest, plan: Plan) -> Outcome {
    let kinds = prop_oneof![
        (1_u64..9).prop_map(|burst| Kind::TokenBucket { burst }),
        (0_u64..9).prop_map(|places| Kind::Queue { places }),
    ];
    let cases = ((1_u64..9, kinds), 1_u64..40, reservation_steps());
    run(plan, &cases, |((count, kind), ms, steps), coverage| {
        let (limit, policy) = build(Spec::new(count, Micros::from_millis(ms), kind))?;
        let mut pending: BTreeMap<Id, (u64, Timestamp)> = BTreeMap::new();
        play_each(system, &policy, &steps, |request, answer| {
            let (now, cost) = (request.time, request.checks[0].2.get());
            pending.retain(|_, entry| now < entry.1);
            let right = match request.operation {
                Operation::Reserve { id, max_wait } => {
                    coverage.answer(std::slice::from_ref(answer));
                    let known = pending.get(&id).copied();
                    let acts = now.saturating_add(answer.delay);
                    if answer.allowed && cost > 0 && known.is_none() && acts > now {
                        pending.insert(id, (cost, acts));
                    }
                    let accepted = cost <= limit.capacity() && answer.delay <= max_wait;
                    match known {
                        Some(known) => answer.replayed && (answer.granted, acts) == known,
                        None => !answer.replayed && (!answer.allowed || accepted),
                    }
                }
                Operation::Cancel { id } => {
                    let known = pending.remove(&id);
                    coverage.count(if known.is_some() { "cancelled" } else { "gone" });
                    let cost = known.map_or(0, |(cost, _)| cost);
                    answer.changed == known.is_some() && answer.granted <= cost
                }
                _ => true,
            };
            if right { Ok(()) } else { Err(format!("{answer:?}")) }
        })
    })
}

fn build(spec: Spec) -> Result<(Limit, Policy), FailureReason> {
    let limit = spec.build().map_err(|error| error.to_string())?;
    let policy = Policy::new("p", [limit]).map_err(|error| error.to_string())?;
    Ok((limit, policy))
}

/// Decides the request of each step, and passes it with its answer to `check`.
fn play_each(
    system: &mut impl SystemUnderTest,
    policy: &Policy,
    steps: &[Step],
    mut check: impl FnMut(&TestRequest, &Expected) -> Result<(), FailureReason>,
) -> Result<(), FailureReason> {
    system.reset();
    let mut player = Player::at(START, false);
    let mut story = "requests in this order:\n".to_owned();
    for step in steps {
        let request = player.next(std::slice::from_ref(policy), step);
        story += &format!("{request}\n");
        let answer =
            single_answer(decide(system, &request)).map_err(|error| format!("{story}{error}"))?;
        player.learn(std::slice::from_ref(&answer));
        check(&request, &answer).map_err(|error| format!("{story}{error}"))?;
    }
    Ok(())
}
