//! Decisions as JSON: one shape on every surface that speaks JSON. Times are seconds, exact to
//! the microsecond; what is absent is null.

use tollgate::{
    Answer, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection, Micros, Policy,
};

use super::asked::Asked;
use super::writer::{Plain, Writer};

/// How an answer says whether anything changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A decision.
    Decision,
    /// What a verb that does not decide has done.
    Change,
}

/// The bytes that a decision of a limit or two takes.
const USUAL_BYTES: usize = 640;

/// A decision as JSON.
pub(super) fn decision(policy: &Policy, decision: &Decision, shape: Shape) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    write_decision(&mut json, policy, decision, shape);
    json.finish()
}

/// The decisions of several checks as JSON, in order.
pub(super) fn several(asked: &[Asked<'_>], answer: &Answer, shape: Shape) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES * asked.len());
    json.put(r#"{"allowed":"#, answer.allowed());
    json.put(r#","retry_after":"#, answer.retry_after());
    json.put(r#","never":"#, answer.never());
    json.list(r#","decisions":"#, asked.iter().zip(&answer.decisions), |json, (asked, x)| {
        write_decision(json, asked.policy(), x, shape);
    });
    json.text("}");
    json.finish()
}

fn write_decision(json: &mut Writer, policy: &Policy, it: &Decision, shape: Shape) {
    json.put(r#"{"allowed":"#, it.allowed);
    json.put(r#","reason":"#, it.reason.as_str());
    // Neither a name nor the text of a limit holds what JSON escapes.
    json.put(r#","policy":"#, policy.name());
    json.put(r#","capacity":"#, it.capacity);
    json.put(r#","remaining":"#, it.remaining);
    json.put(r#","retry_after":"#, it.retry_after);
    json.put(r#","never":"#, it.never);
    json.put(r#","reset_after":"#, it.reset_after);
    json.put(r#","delay":"#, it.delay);
    json.put(r#","granted":"#, it.granted);
    json.put(r#","source":"#, it.source.as_str());
    json.put(r#","degraded":"#, it.degraded);
    json.put(r#","replayed":"#, it.replayed);
    json.put(r#","time":"#, it.time);
    if shape == Shape::Change {
        json.put(r#","changed":"#, it.changed);
    }
    if let Some(lease) = it.lease {
        json.put(r#","lease_id":"#, Plain(lease));
    }
    if let Some(reservation) = it.reservation {
        json.put(r#","reservation_id":"#, Plain(reservation));
    }
    json.list(
        r#","limits":"#,
        policy.limits().iter().zip(it.each_limit()),
        |json, (limit, said)| {
            write_limit(json, limit, &said, it.shadow);
        },
    );
    json.text("}");
}

fn write_limit(json: &mut Writer, limit: &Limit, said: &LimitDecision, is_shadow: bool) {
    json.put(r#"{"limit":"#, Plain(limit));
    json.put(r#","allowed":"#, said.allowed);
    json.put(r#","binding":"#, said.binding);
    json.put(r#","capacity":"#, said.capacity);
    json.put(r#","remaining":"#, said.remaining);
    json.put(r#","retry_after":"#, said.retry_after);
    json.put(r#","reset_after":"#, said.reset_after);
    json.text(if is_shadow { r#","shadow":true}"# } else { "}" });
}

/// What is kept of a key as JSON.
pub(super) fn inspection(policy: &Policy, it: &Inspection) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    json.put(r#"{"policy":"#, policy.name());
    json.text(r#","block":"#);
    match it.block {
        None => json.text("null"),
        Some(Block::Forever) => json.text(r#"{"ends_after":null}"#),
        Some(Block::Until(end)) => {
            let ends_after: Micros = end.duration_since(it.time);
            json.put(r#"{"ends_after":"#, ends_after);
            json.text("}");
        }
    }
    json.list(r#","limits":"#, policy.limits().iter().zip(&it.limits), |json, (limit, held)| {
        write_held(json, limit, held);
    });
    json.list(r#","reservations":"#, &it.reservations, |json, reservation| {
        json.put(r#"{"reservation_id":"#, Plain(reservation.id));
        json.put(r#","cost":"#, reservation.cost);
        json.put(r#","acts_after":"#, reservation.acts_after);
        json.text("}");
    });
    json.put(r#","time":"#, it.time);
    json.text("}");
    json.finish()
}

fn write_held(json: &mut Writer, limit: &Limit, held: &LimitInspection) {
    json.put(r#"{"limit":"#, Plain(limit));
    json.put(r#","capacity":"#, held.capacity);
    json.put(r#","used":"#, held.used);
    json.put(r#","remaining":"#, held.remaining);
    json.put(r#","reset_after":"#, held.reset_after);
    json.list(r#","leases":"#, &held.leases, |json, lease| {
        json.put(r#"{"lease_id":"#, Plain(lease.id));
        json.put(r#","cost":"#, lease.cost);
        json.put(r#","ends_after":"#, lease.ends_after);
        json.text("}");
    });
    json.text("}");
}
