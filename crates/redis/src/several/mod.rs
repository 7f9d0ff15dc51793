//! Requests whose checks are in several groups of a cluster, which no single call can decide.
//!
//! First every group is asked, which charges nothing. Only if all admit is each charged; if one then
//! denies, because others came between, the rest give back exactly what they were charged. So nothing
//! is admitted that one call would deny; a request may be denied while another such one on one of its
//! keys is under way; and who dies in between leaves what it charged until that recovers.
//!
//! - A request id is remembered with the group of the first check, which is charged last: so it
//!   stands for the whole. A repeat is told that group's first answer, and of the others what they
//!   say now. One that a group denies by then, for the first time has used it up, is told so:
//!   stricter than one call, and charged once.
//! - A denial is counted, by limits that count them, in those groups that deny by themselves.
//! - Checks of shadow policies have no say in this, and are decided alone: after the others if the
//!   request has an id, which their groups remember too if it was admitted. So a repeat charges them
//!   nothing either. Where all are shadows the first group stands for the whole.

mod parts;

use std::sync::Arc;

use tokio::sync::oneshot;
use tollgate_core::{Cost, Decision, Id, Micros, Operation, Reason};
use tollgate_store::{Answer, FailureKind, StoreError};

use crate::answer::Told;
use crate::ask::fingerprint;
use crate::asked::{Asked, AskedCheck, Whole};
use crate::node::Common;
use crate::topology::Routes;
use crate::waiting::{Outcome, Waiting};
use parts::{Part, Parts};

/// Sends requests, and gets their answers.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) common: Arc<Common>,
    pub(crate) routes: Arc<Routes>,
}

impl Sender {
    /// Sends a request whose keys are of one group; the answer comes later.
    pub(crate) fn send(&self, asked: Asked, group: u16) -> oneshot::Receiver<Outcome> {
        let (waiting, answered) = Waiting::new(asked, group, self.common.clock.now());
        self.routes.submit(waiting);
        answered
    }

    /// Decides a request of several groups; `is_wanted` says whether there still is somebody who
    /// waits for the answer.
    pub(crate) async fn decide(
        &self,
        request: &Asked,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Answer, StoreError> {
        let parts = Parts::of(request, &self.common.names);
        let has_id = request.request_id.is_some();
        let sent = (!has_id).then(|| self.send_shadows(&parts, request, false));
        let mut decisions = vec![Decision::default(); request.checks.len()];
        let enforced = match &parts.enforced[..] {
            _ if request.verb == Operation::Peek => self.peek(&parts.enforced).await?,
            [only] => vec![decisions_of(self.send_named(only, request).await)?],
            several => self.ask_then_charge(several, request, is_wanted).await?,
        };
        let is_admitted = enforced.iter().all(|enforced| admits(enforced));
        let shadows = sent.unwrap_or_else(|| self.send_shadows(&parts, request, is_admitted));
        put(&mut decisions, &parts.enforced, enforced);
        let mut decided = Vec::with_capacity(shadows.len());
        for shadow in shadows {
            decided.push(decisions_of(shadow.await)?);
        }
        put(&mut decisions, &parts.shadows, decided);
        Ok(Answer { decisions })
    }

    fn send_part(&self, part: &Part, verb: Operation) -> oneshot::Receiver<Outcome> {
        let checks = part.checks.clone();
        let asked = Asked { verb, checks, request_id: None, inspects: false, part_of: None };
        self.send(asked, part.group)
    }

    /// Sends a part under the id of the whole request, which is known by all that was asked.
    fn send_named(&self, part: &Part, request: &Asked) -> oneshot::Receiver<Outcome> {
        self.send_as(part, request, false)
    }

    fn send_as(&self, part: &Part, request: &Asked, is_aside: bool) -> oneshot::Receiver<Outcome> {
        let part_of = Some(Whole { fingerprint: fingerprint(request), is_aside });
        let asked = Asked { checks: part.checks.clone(), part_of, ..request.clone() };
        self.send(asked, part.group)
    }

    /// Sends the shadows; as in one call, what is denied is not remembered.
    fn send_shadows(
        &self,
        parts: &Parts,
        request: &Asked,
        is_remembered: bool,
    ) -> Vec<oneshot::Receiver<Outcome>> {
        let send = |part| match is_remembered {
            true => self.send_as(part, request, true),
            false => self.send_part(part, request.verb),
        };
        parts.shadows.iter().map(send).collect()
    }

    async fn send_all(
        &self,
        parts: &[Part],
        verb: Operation,
    ) -> Vec<Result<Vec<Decision>, StoreError>> {
        let sent: Vec<_> = parts.iter().map(|part| self.send_part(part, verb)).collect();
        let mut answers = Vec::with_capacity(sent.len());
        for answer in sent {
            answers.push(decisions_of(answer.await));
        }
        answers
    }

    /// Asks without charging. What is denied elsewhere is not acted upon here.
    async fn peek(&self, parts: &[Part]) -> Result<Vec<Vec<Decision>>, StoreError> {
        let asked = self.send_all(parts, Operation::Peek).await.into_iter();
        let mut peeked = asked.collect::<Result<Vec<_>, _>>().map_err(not_charged)?;
        if !peeked.iter().all(|peeked| admits(peeked)) {
            peeked.iter_mut().flatten().for_each(|peeked| peeked.delay = Micros::ZERO);
        }
        Ok(peeked)
    }

    async fn ask_then_charge(
        &self,
        parts: &[Part],
        request: &Asked,
        is_wanted: impl Fn() -> bool,
    ) -> Result<Vec<Vec<Decision>>, StoreError> {
        let peeked = self.peek(parts).await?;
        let admitted = peeked.iter().all(|peeked| admits(peeked));
        if !admitted && !self.is_repeat(parts, &peeked, lease_of(request.verb)).await? {
            return Ok(self.count_denied(parts, request.verb, peeked).await);
        }
        if !is_wanted() {
            return Err(StoreError::unavailable(FailureKind::Deadline, "before it was charged"));
        }
        let charged = self.charge(parts, request).await;
        let is_repeat = request.request_id.is_some()
            && matches!(&charged[..], [Ok(home), ..] if home.iter().any(|it| it.replayed));
        let all_admit = charged.iter().all(|charged| charged.as_ref().is_ok_and(|i| admits(i)));
        if all_admit && !is_repeat {
            return charged.into_iter().collect();
        }
        for (part, charged) in parts.iter().zip(&charged) {
            if let Ok(decisions) = charged {
                self.give_back(part, decisions, request.verb).await;
            }
        }
        let mut answers = Vec::with_capacity(parts.len());
        for (charged, mut peeked) in charged.into_iter().zip(peeked) {
            let mut charged = charged?;
            if is_repeat {
                charged.iter_mut().for_each(|charged| charged.replayed = true);
                answers.push(charged);
            } else if admits(&charged) {
                peeked.iter_mut().for_each(|peeked| peeked.delay = Micros::ZERO);
                answers.push(peeked);
            } else {
                answers.push(charged);
            }
        }
        Ok(answers)
    }

    /// Charges every group at once, but that of the first check last if the request has an id.
    async fn charge(
        &self,
        parts: &[Part],
        request: &Asked,
    ) -> Vec<Result<Vec<Decision>, StoreError>> {
        let (true, Some((home, others))) = (request.request_id.is_some(), parts.split_first())
        else {
            return self.send_all(parts, request.verb).await;
        };
        let mut others = self.send_all(others, request.verb).await;
        let all_admit = others.iter().all(|other| other.as_ref().is_ok_and(|i| admits(i)));
        let home = if all_admit {
            decisions_of(self.send_named(home, request).await)
        } else {
            decisions_of(self.send_part(home, Operation::Peek).await)
        };
        others.insert(0, home);
        others
    }

    /// Whether all that deny do so only because they hold the request's lease already.
    async fn is_repeat(
        &self,
        parts: &[Part],
        peeked: &[Vec<Decision>],
        lease: Option<Id>,
    ) -> Result<bool, StoreError> {
        let Some(lease) = lease else { return Ok(false) };
        let mut looks = Vec::new();
        for (part, decisions) in parts.iter().zip(peeked) {
            for (check, decision) in part.checks.iter().zip(decisions) {
                if decision.allowed {
                    continue;
                }
                let checks = vec![check.clone()];
                let asked = Asked {
                    verb: Operation::Peek,
                    checks,
                    request_id: None,
                    inspects: true,
                    part_of: None,
                };
                looks.push(self.send(asked, part.group));
            }
        }
        for look in looks {
            let Told::Inspection(inspection) = received(look.await).map_err(not_charged)? else {
                return Ok(false);
            };
            let mut leases = inspection.limits.iter().flat_map(|limit| &limit.leases);
            if !leases.any(|l| l.id == lease) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Has the groups that deny by themselves count it.
    async fn count_denied(
        &self,
        parts: &[Part],
        verb: Operation,
        mut peeked: Vec<Vec<Decision>>,
    ) -> Vec<Vec<Decision>> {
        if peeked.iter().flatten().any(|peeked| peeked.never || peeked.reason != Reason::Limit) {
            return peeked;
        }
        for (part, decisions) in parts.iter().zip(&mut peeked) {
            let mut limits = part.checks.iter().flat_map(|check| check.policy.limits());
            if admits(decisions) || !limits.any(|limit| limit.counts_denied()) {
                continue;
            }
            let Ok(counted) = decisions_of(self.send_part(part, verb).await) else {
                continue;
            };
            if admits(&counted) {
                self.give_back(part, &counted, verb).await;
            } else {
                *decisions = counted;
            }
        }
        peeked
    }

    /// Gives back what a group was charged. Where that fails it stays until it recovers.
    async fn give_back(&self, part: &Part, decisions: &[Decision], verb: Operation) {
        let mut sent = Vec::new();
        for (check, decision) in part.checks.iter().zip(decisions) {
            if decision.replayed || decision.granted == 0 || !admits(decisions) {
                continue;
            }
            let mut undo = |verb| {
                let cost = Cost::new(decision.granted).unwrap_or(check.cost);
                let checks = vec![AskedCheck { cost, ..check.clone() }];
                let asked =
                    Asked { verb, checks, request_id: None, inspects: false, part_of: None };
                sent.push(self.send(asked, part.group));
            };
            if check.policy.limits().iter().any(|limit| !limit.is_concurrent()) {
                undo(Operation::Refund { time: Some(decision.time) });
            }
            if let Some(lease) = lease_of(verb).filter(|_| check.policy.has_concurrent()) {
                undo(Operation::Release { lease });
            }
        }
        for undone in sent {
            // There is nobody else to tell.
            let _ = undone.await;
        }
    }
}

fn lease_of(verb: Operation) -> Option<Id> {
    match verb {
        Operation::Check { lease } => lease,
        Operation::Acquire { lease } => Some(lease),
        _ => None,
    }
}

fn admits(decisions: &[Decision]) -> bool {
    decisions.iter().all(|decision| decision.allowed)
}

/// What was told, or why nothing was.
pub(crate) fn received(
    answer: Result<Outcome, oneshot::error::RecvError>,
) -> Result<Told, StoreError> {
    answer.unwrap_or_else(|_| {
        Err(StoreError::unavailable(FailureKind::ConnectionLost, "the store was closed meanwhile"))
    })
}

fn decisions_of(
    answer: Result<Outcome, oneshot::error::RecvError>,
) -> Result<Vec<Decision>, StoreError> {
    match received(answer)? {
        Told::Decisions(decisions) => Ok(decisions.decisions),
        Told::Inspection(_) => Err(crate::error::protocol("an inspection for decisions")),
    }
}

/// Looking charges nothing, so nothing is unknown of it.
fn not_charged(error: StoreError) -> StoreError {
    match error {
        StoreError::Unavailable(value) if value.kind == FailureKind::ConnectionLost => {
            StoreError::unavailable(FailureKind::Unreachable, value.message)
        }
        error => error,
    }
}

/// Puts the decisions of each part to their checks.
fn put(decisions: &mut [Decision], parts: &[Part], decided: Vec<Vec<Decision>>) {
    for (part, decided) in parts.iter().zip(decided) {
        for (place, decision) in part.places.iter().zip(decided) {
            if let Some(decisions) = decisions.get_mut(*place) {
                *decisions = decision;
            }
        }
    }
}
