//! Leases and reservations, held against a list of what was granted.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tollgate_core::{Id, Kind, Limit, Micros, Operation, Policy, Spec, Timestamp};

use super::play::{ask, only};
use super::player::{Player, START, TestRequest};
use super::runner::{Coverage, FailureReason, Plan, Violation, run};
use super::trace::{Step, lease_steps, reservation_steps};
use crate::model::Expected;
use crate::system::SystemUnderTest;

/// Who holds places, how many, and until when.
#[derive(Debug, Default)]
struct HeldLeases(BTreeMap<Id, (u64, Timestamp)>);

impl HeldLeases {
    fn places(&self, now: Timestamp) -> u64 {
        self.0.values().filter(|value| now < value.1).map(|value| value.0).sum()
    }

    fn holds(&self, id: Id, now: Timestamp) -> bool {
        self.0.get(&id).is_some_and(|x| now < x.1)
    }

    /// Enters what was answered, if it is what the list allows.
    fn enter(
        &mut self,
        asked: &TestRequest,
        it: &Expected,
        limit: &Limit,
    ) -> Result<(), FailureReason> {
        let (now, cost) = (asked.time, asked.checks[0].2.get());
        let end = now.saturating_add(limit.spec().window);
        let right = match asked.operation {
            Operation::Acquire { lease } if self.holds(lease, now) && cost > 0 => it.replayed,
            Operation::Acquire { lease } => {
                let fits = self.places(now) + cost <= limit.capacity();
                if it.allowed && cost > 0 {
                    self.0.insert(lease, (cost, end));
                }
                it.allowed == fits && !it.replayed
            }
            Operation::Renew { lease } => {
                let held = self.holds(lease, now);
                if let Some(entry) = self.0.get_mut(&lease).filter(|_| held) {
                    entry.1 = end;
                }
                it.changed == held
            }
            Operation::Release { lease } => {
                let held = self.holds(lease, now);
                self.0.remove(&lease);
                it.changed == held
            }
            _ => true,
        };
        let remaining = limit.capacity().checked_sub(self.places(now));
        if right && remaining == Some(it.remaining) { Ok(()) } else { Err(format!("{it:?}")) }
    }
}

/// At every instant no more is held than there are places; a release frees its own place once;
/// a renewal lasts from now, unless the lease is gone.
///
/// # Errors
/// The least trace in which it is not so.
pub fn leases_hold_their_places(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let cases = (1_u64..9, 1_u64..40, lease_steps());
    run(plan, &cases, |(count, ms, steps), seen| {
        let spec = Spec::new(count, Micros::from_millis(ms), Kind::Concurrent);
        let (limit, policy) = built(spec)?;
        let mut held = HeldLeases::default();
        play_each(system, &policy, &steps, |asked, answer| {
            match asked.operation {
                Operation::Acquire { .. } => seen.answer(std::slice::from_ref(answer)),
                operation => {
                    seen.count(if answer.changed { "changed" } else { operation.as_str() })
                }
            }
            held.enter(asked, answer, &limit)
        })
    })
}

/// A reservation acts when it said, is cancelled once and before that, and then gives back no
/// more than it cost.
///
/// # Errors
/// The least trace in which it is not so.
pub fn reservations_are_kept(
    system: &mut impl SystemUnderTest,
    plan: Plan,
) -> Result<Coverage, Violation> {
    let kinds = prop_oneof![
        (1_u64..9).prop_map(|burst| Kind::TokenBucket { burst }),
        (0_u64..9).prop_map(|places| Kind::Queue { places }),
    ];
    let cases = ((1_u64..9, kinds), 1_u64..40, reservation_steps());
    run(plan, &cases, |((count, kind), ms, steps), seen| {
        let (limit, policy) = built(Spec::new(count, Micros::from_millis(ms), kind))?;
        let mut pending: BTreeMap<Id, (u64, Timestamp)> = BTreeMap::new();
        play_each(system, &policy, &steps, |asked, y| {
            let (now, cost) = (asked.time, asked.checks[0].2.get());
            pending.retain(|_, entry| now < entry.1);
            let right = match asked.operation {
                Operation::Reserve { id, max_wait } => {
                    seen.answer(std::slice::from_ref(y));
                    let known = pending.get(&id).copied();
                    let acts = now.saturating_add(y.delay);
                    if y.allowed && cost > 0 && known.is_none() && acts > now {
                        pending.insert(id, (cost, acts));
                    }
                    let accepted = cost <= limit.capacity() && y.delay <= max_wait;
                    match known {
                        Some(known) => y.replayed && (y.granted, acts) == known,
                        None => !y.replayed && (!y.allowed || accepted),
                    }
                }
                Operation::Cancel { id } => {
                    let known = pending.remove(&id);
                    seen.count(if known.is_some() { "cancelled" } else { "gone" });
                    y.changed == known.is_some() && y.granted <= known.map_or(0, |x| x.0)
                }
                _ => true,
            };
            if right { Ok(()) } else { Err(format!("{y:?}")) }
        })
    })
}

fn built(spec: Spec) -> Result<(Limit, Policy), FailureReason> {
    let limit = spec.build().map_err(|error| error.to_string())?;
    let policy = Policy::new("p", [limit]).map_err(|error| error.to_string())?;
    Ok((limit, policy))
}

/// Asks for each step in turn, and has the answer seen.
fn play_each(
    system: &mut impl SystemUnderTest,
    policy: &Policy,
    steps: &[Step],
    mut see: impl FnMut(&TestRequest, &Expected) -> Result<(), FailureReason>,
) -> Result<(), FailureReason> {
    system.reset();
    let mut player = Player::at(START, false);
    let mut story = "asked in this order:\n".to_owned();
    for step in steps {
        let asked = player.next(std::slice::from_ref(policy), step);
        story += &format!("{asked}\n");
        let answer = only(ask(system, &asked)).map_err(|error| format!("{story}{error}"))?;
        player.learn(std::slice::from_ref(&answer));
        see(&asked, &answer).map_err(|error| format!("{story}{error}"))?;
    }
    Ok(())
}
