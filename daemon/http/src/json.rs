//! Decisions as JSON, written fast: a response has some twenty numbers. Times are seconds, exact to
//! the microsecond; an absent value is null.

use std::fmt::{Display, Write};

use tollgate::{
    Answer, BanInspection, Block, Decision, Inspection, Limit, LimitDecision, LimitInspection,
    Micros, Policy, Timestamp,
};
use tollgate_engine::{Action, CheckRequest};
use tollgate_insight::KeyRecord;

use super::keys;

/// The usual length of a decision with one or two limits, in bytes.
const USUAL_BYTES: usize = 640;

/// A decision as JSON.
pub(super) fn decision(policy: &Policy, decision: &Decision, hint: Option<&str>) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    write_decision(&mut json, policy, decision, hint);
    json.finish()
}

/// The decisions of several checks as JSON, in their order.
pub(super) fn decisions(checks: &[CheckRequest<'_>], answer: &Answer) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES * checks.len());
    json.put(r#"{"allowed":"#, answer.allowed());
    json.put(r#","retry_after":"#, answer.retry_after());
    json.put(r#","never":"#, answer.never());
    let decisions = checks.iter().zip(&answer.decisions);
    json.list(r#","decisions":"#, decisions, |json, (check, decision)| {
        write_decision(json, &check.policy, decision, check.hint.as_deref());
    });
    json.text("}");
    json.finish()
}

/// The result of an operation that decides nothing, as JSON.
pub(super) fn change(
    policy: &Policy,
    action: Action,
    decision: &Decision,
    hint: Option<&str>,
) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    write_change(&mut json, policy, action, decision, hint);
    json.finish()
}

/// The results of such an operation on several checks, in their order.
pub(super) fn changes(checks: &[CheckRequest<'_>], action: Action, answer: &Answer) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES * checks.len());
    json.put(r#"{"changed":"#, answer.decisions.iter().any(|decision| decision.changed));
    let decisions = checks.iter().zip(&answer.decisions);
    json.list(r#","decisions":"#, decisions, |json, (check, decision)| {
        write_change(json, &check.policy, action, decision, check.hint.as_deref());
    });
    json.text("}");
    json.finish()
}

fn write_decision(json: &mut Writer, policy: &Policy, decision: &Decision, hint: Option<&str>) {
    json.put(r#"{"allowed":"#, decision.allowed);
    json.put(r#","reason":"#, decision.reason_name());
    // Names and limits contain no characters that JSON escapes.
    json.put(r#","policy":"#, policy.name());
    json.put(r#","capacity":"#, decision.capacity);
    json.put(r#","remaining":"#, decision.remaining);
    json.put(r#","retry_after":"#, decision.retry_after);
    json.put(r#","never":"#, decision.never);
    json.put(r#","reset_after":"#, decision.reset_after);
    json.put(r#","delay":"#, decision.delay);
    json.put(r#","granted":"#, decision.granted);
    json.put(r#","source":"#, decision.source.as_str());
    json.put(r#","degraded":"#, decision.degraded);
    json.put(r#","replayed":"#, decision.replayed);
    json.put(r#","time":"#, decision.time);
    write_hint(json, hint);
    write_ids(json, decision);
    json.list(
        r#","limits":"#,
        policy.limits().iter().zip(decision.each_limit()),
        |json, (limit, result)| write_limit(json, limit, &result, decision.shadow),
    );
    json.text("}");
}

fn write_change(
    json: &mut Writer,
    policy: &Policy,
    action: Action,
    decision: &Decision,
    hint: Option<&str>,
) {
    json.put(r#"{"changed":"#, decision.changed);
    json.put(r#","granted":"#, decision.granted);
    json.put(r#","policy":"#, policy.name());
    json.put(r#","capacity":"#, decision.capacity);
    json.put(r#","remaining":"#, decision.remaining);
    json.put(r#","reset_after":"#, decision.reset_after);
    json.put(r#","replayed":"#, decision.replayed);
    json.put(r#","time":"#, decision.time);
    if let Some(block) = action.block_after(decision) {
        write_block(json, block, decision.time);
    }
    write_hint(json, hint);
    write_ids(json, decision);
    json.list(
        r#","limits":"#,
        policy.limits().iter().zip(decision.each_limit()),
        |json, (limit, result)| {
            json.put(r#"{"limit":"#, Plain(limit));
            json.put(r#","capacity":"#, result.capacity);
            json.put(r#","remaining":"#, result.remaining);
            json.put(r#","reset_after":"#, result.reset_after);
            json.text("}");
        },
    );
    json.text("}");
}

fn write_ids(json: &mut Writer, decision: &Decision) {
    if let Some(lease) = decision.lease {
        json.put(r#","lease_id":"#, Plain(lease));
    }
    if let Some(reservation) = decision.reservation {
        json.put(r#","reservation_id":"#, Plain(reservation));
    }
}

fn write_block(json: &mut Writer, block: Option<Block>, now: Timestamp) {
    json.text(r#","block":"#);
    match block {
        None => json.text("null"),
        Some(Block::Forever) => json.text(r#"{"ends_after":null}"#),
        Some(Block::Until(end)) => {
            let ends_after: Micros = end.duration_since(now);
            json.put(r#"{"ends_after":"#, ends_after);
            json.text("}");
        }
    }
}

fn write_hint(json: &mut Writer, hint: Option<&str>) {
    if let Some(hint) = hint {
        json.text(r#","hint":"#);
        json.escaped(hint);
    }
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
pub(super) fn inspection(
    policy: &Policy,
    key: &Inspection,
    record: Option<&KeyRecord>,
    has_ids: bool,
    hint: Option<&str>,
) -> String {
    let mut json = Writer::with_capacity(USUAL_BYTES);
    json.put(r#"{"policy":"#, policy.name());
    write_hint(&mut json, hint);
    write_block(&mut json, key.block, key.time);
    write_ban(&mut json, key.ban);
    json.list(r#","limits":"#, policy.limits().iter().zip(&key.limits), |json, (limit, state)| {
        write_limit_state(json, limit, state, has_ids);
    });
    json.list(r#","reservations":"#, &key.reservations, |json, reservation| {
        json.text("{");
        if has_ids {
            json.put(r#""reservation_id":"#, Plain(reservation.id));
            json.text(",");
        }
        json.put(r#""cost":"#, reservation.cost);
        json.put(r#","acts_after":"#, reservation.acts_after);
        json.text("}");
    });
    if let Some(held) = key.held {
        json.put(r#","held":{"remaining":"#, held.remaining);
        json.put(r#","ends_after":"#, held.ends_after);
        json.text("}");
    }
    if let Some(record) = record {
        keys::write_record(&mut json, record);
    }
    json.put(r#","time":"#, key.time);
    json.text("}");
    json.finish()
}

fn write_ban(json: &mut Writer, ban: Option<BanInspection>) {
    let Some(ban) = ban else {
        json.text(r#","ban":null"#);
        return;
    };
    json.put(r#","ban":{"max_denials":"#, ban.max_denials);
    json.put(r#","denials":"#, ban.denials);
    json.put(r#","window_ends_after":"#, ban.window_ends_after);
    json.put(r#","banned_for":"#, ban.banned_for);
    json.text("}");
}

fn write_limit_state(json: &mut Writer, limit: &Limit, state: &LimitInspection, has_ids: bool) {
    json.put(r#"{"limit":"#, Plain(limit));
    json.put(r#","capacity":"#, state.capacity);
    json.put(r#","used":"#, state.used);
    json.put(r#","remaining":"#, state.remaining);
    json.put(r#","reset_after":"#, state.reset_after);
    json.list(r#","leases":"#, &state.leases, |json, lease| {
        json.text("{");
        if has_ids {
            json.put(r#""lease_id":"#, Plain(lease.id));
            json.text(",");
        }
        json.put(r#""cost":"#, lease.cost);
        json.put(r#","ends_after":"#, lease.ends_after);
        json.text("}");
    });
    json.text("}");
}

/// A buffer of JSON.
#[derive(Debug)]
pub(super) struct Writer(String);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Writer(String::with_capacity(bytes))
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    /// Writes JSON unchanged.
    #[inline]
    pub(super) fn text(&mut self, json: &str) {
        self.0.push_str(json);
    }

    /// Writes any text as a string.
    pub(super) fn escaped(&mut self, text: &str) {
        self.text(&serde_json::Value::from(text).to_string());
    }

    /// Writes a value after its name and the punctuation before it.
    #[inline]
    pub(super) fn put(&mut self, before: &str, value: impl Value) {
        self.0.push_str(before);
        value.write(self);
    }

    /// Writes a list after its name; `write` writes each element.
    pub(super) fn list<T>(
        &mut self,
        before: &str,
        elements: impl IntoIterator<Item = T>,
        write: impl Fn(&mut Writer, T),
    ) {
        self.0.push_str(before);
        self.0.push('[');
        for (index, element) in elements.into_iter().enumerate() {
            self.0.push_str(if index == 0 { "" } else { "," });
            write(self, element);
        }
        self.0.push(']');
    }
}

/// A value of an object.
pub(super) trait Value {
    fn write(&self, json: &mut Writer);
}

impl Value for bool {
    fn write(&self, json: &mut Writer) {
        json.0.push_str(if *self { "true" } else { "false" });
    }
}

impl Value for u64 {
    fn write(&self, json: &mut Writer) {
        json.0.push_str(itoa::Buffer::new().format(*self));
    }
}

/// Seconds, with as many decimals as necessary.
impl Value for Micros {
    fn write(&self, json: &mut Writer) {
        const SECOND: u64 = 1_000_000;
        (self.get() / SECOND).write(json);
        let rest = self.get() % SECOND;
        if rest > 0 {
            // The leading 1, which is skipped, keeps the zeros after it.
            let mut decimals = itoa::Buffer::new();
            let decimals = decimals.format(SECOND + rest).trim_end_matches('0');
            json.0.push('.');
            json.0.push_str(&decimals[1..]);
        }
    }
}

impl Value for Timestamp {
    fn write(&self, json: &mut Writer) {
        Micros::new(self.as_micros()).write(json);
    }
}

impl<T: Value> Value for Option<T> {
    fn write(&self, json: &mut Writer) {
        match self {
            Some(value) => value.write(json),
            None => json.0.push_str("null"),
        }
    }
}

/// A text without characters that JSON escapes.
impl Value for &str {
    fn write(&self, json: &mut Writer) {
        json.0.push('"');
        json.0.push_str(self);
        json.0.push('"');
    }
}

/// A value that is formatted as a string without characters that JSON escapes.
#[derive(Clone, Copy, Debug)]
struct Plain<T>(T);

impl<T: Display> Value for Plain<T> {
    fn write(&self, json: &mut Writer) {
        // Writing to a string does not fail.
        let _ = write!(json.0, "\"{}\"", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_formatted_as_by_the_library() {
        for micros in
            [0, 1, 10, 999_999, 1_000_000, 1_000_001, 1_100_000, 59_955_632, 1_763_650_000_123_456]
        {
            let mut json = Writer::with_capacity(32);
            Micros::new(micros).write(&mut json);
            assert_eq!(json.finish(), Micros::new(micros).to_string());
        }
    }

    #[test]
    fn list_elements_are_separated_by_commas() {
        let mut json = Writer::with_capacity(64);
        json.list("", [Some(1), None, Some(2)], |json, element| json.put("", element));
        json.list("", [true; 0], |json, element| json.put("", element));
        assert_eq!(json.finish(), "[1,null,2][]");
    }
}
