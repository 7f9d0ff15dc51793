//! Decisions as JSON. Times are seconds, exact to the microsecond; an absent value is null.

use tollgate::{
    Answer, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection, Micros, Policy,
};

use tollgate_engine::{CheckRequest, ResponseKind};

use super::writer::{Plain, Writer};

/// The usual length of a decision with one or two limits, in bytes.
const USUAL_BYTES: usize = 640;

/// A decision as JSON.
pub(super) fn decision(policy: &Policy, decision: &Decision, response: ResponseKind) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    write_decision(&mut json, policy, decision, response);
    json.finish()
}

/// The decisions of several checks as JSON, in their order.
pub(super) fn decisions(
    checks: &[CheckRequest<'_>],
    answer: &Answer,
    response: ResponseKind,
) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES * checks.len());
    json.put(r#"{"allowed":"#, answer.allowed());
    json.put(r#","retry_after":"#, answer.retry_after());
    json.put(r#","never":"#, answer.never());
    let decisions = checks.iter().zip(&answer.decisions);
    json.list(r#","decisions":"#, decisions, |json, (check, decision)| {
        write_decision(json, &check.policy, decision, response);
    });
    json.text("}");
    json.finish()
}

fn write_decision(json: &mut Writer, policy: &Policy, it: &Decision, response: ResponseKind) {
    json.put(r#"{"allowed":"#, it.allowed);
    json.put(r#","reason":"#, it.reason.as_str());
    // Names and limits contain no characters that JSON escapes.
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
    if response == ResponseKind::Change {
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
        |json, (limit, decision)| {
            write_limit(json, limit, &decision, it.shadow);
        },
    );
    json.text("}");
}

fn write_limit(json: &mut Writer, limit: &Limit, decision: &LimitDecision, is_shadow: bool) {
    json.put(r#"{"limit":"#, Plain(limit));
    json.put(r#","allowed":"#, decision.allowed);
    json.put(r#","binding":"#, decision.binding);
    json.put(r#","capacity":"#, decision.capacity);
    json.put(r#","remaining":"#, decision.remaining);
    json.put(r#","retry_after":"#, decision.retry_after);
    json.put(r#","reset_after":"#, decision.reset_after);
    json.text(if is_shadow { r#","shadow":true}"# } else { "}" });
}

/// The state of a key as JSON.
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
