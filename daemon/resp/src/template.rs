//! Decisions whose replies differ only in their counts, as nearly all of a connection do. The text
//! between the counts is copied from an earlier reply.

use tollgate::{Decision, Micros, Policy, Reason, Source};

use super::reply_buffer::{Protocol, ReplyBuffer, push_count};

/// The templates of a connection: of some policies, for admitted and denied requests.
const MAX_TEMPLATES: usize = 8;

/// The templates of a connection.
#[derive(Debug, Default)]
pub(super) struct Templates {
    all: Vec<Template>,
    /// Replaced by the next one that is new, once there are [`MAX_TEMPLATES`].
    oldest: usize,
}

impl Templates {
    #[inline]
    pub(super) fn find(&self, policy: &Policy, shape: Shape) -> Option<&Template> {
        self.all.iter().find(|known| known.shape == shape && known.policy.ptr_eq(policy))
    }

    fn add(&mut self, template: Template) {
        if self.all.len() < MAX_TEMPLATES {
            self.all.push(template);
            return;
        }
        self.all[self.oldest] = template;
        self.oldest = (self.oldest + 1) % MAX_TEMPLATES;
    }
}

/// The text of a decision between its counts.
#[derive(Debug)]
pub(super) struct Template {
    policy: Policy,
    shape: Shape,
    text: Vec<u8>,
    /// The length of the text before each count.
    lens: Vec<usize>,
}

/// What the text depends on, besides the policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    protocol: Protocol,
    allowed: bool,
    reason: Reason,
    source: Source,
    waits: bool,
    capacity: u64,
    granted: u64,
}

impl Shape {
    /// The shape of a decision; absent if its reply has rare fields or
    /// several limits.
    #[inline]
    fn from_decision(protocol: Protocol, decision: &Decision) -> Option<Self> {
        let is_rare = decision.never
            || decision.degraded
            || decision.replayed
            || decision.shadow
            || decision.delay != Micros::ZERO
            || decision.reset_after.is_none()
            || decision.lease.is_some()
            || decision.reservation.is_some()
            || !decision.has_single_limit();
        (!is_rare).then_some(Shape {
            protocol,
            allowed: decision.allowed,
            reason: decision.reason,
            source: decision.source,
            waits: decision.retry_after.is_some(),
            capacity: decision.capacity,
            granted: decision.granted,
        })
    }
}

impl Template {
    /// Writes a decision of the same shape.
    #[inline]
    pub(super) fn write(&self, decision: &Decision, out: &mut Vec<u8>) {
        let (remaining, time) = (decision.remaining, decision.time.as_micros());
        let reset_after = decision.reset_after.unwrap_or_default().get();
        // The only limit has the counts of its policy.
        match decision.retry_after.map(Micros::get) {
            None => {
                self.interleave(&[remaining, reset_after, time, remaining, reset_after], out);
            }
            Some(retry_after) => {
                self.interleave(
                    &[
                        remaining,
                        retry_after,
                        reset_after,
                        time,
                        remaining,
                        retry_after,
                        reset_after,
                    ],
                    out,
                );
            }
        }
    }

    #[inline]
    fn interleave(&self, counts: &[u64], out: &mut Vec<u8>) {
        let mut rest = &*self.text;
        for (&len, &count) in self.lens.iter().zip(counts) {
            let (before, after) = rest.split_at(len);
            out.extend_from_slice(before);
            push_count(out, count);
            rest = after;
        }
        out.extend_from_slice(rest);
    }
}

/// Writes a decision as `write` does, which must write varying counts with
/// [`ReplyBuffer::varying`].
#[inline]
pub(super) fn write(
    out: &mut ReplyBuffer,
    policy: &Policy,
    decision: &Decision,
    write: impl FnOnce(&mut ReplyBuffer),
) {
    let Some(shape) = Shape::from_decision(out.protocol, decision) else { return write(out) };
    if !out.write_template(policy, shape, decision) {
        let (text, lens) = out.record(write);
        out.templates.add(Template { policy: policy.clone(), shape, text, lens });
    }
}

#[cfg(test)]
mod tests {
    use tollgate::{Key, MemoryLimiter};

    use super::*;
    use crate::decision;

    fn encode(out: &mut ReplyBuffer, policy: &Policy, decision: &Decision) -> Vec<u8> {
        out.clear(usize::MAX);
        decision::write(out, policy, decision, None);
        out.bytes().to_vec()
    }

    /// Checks of policies and protocols in turn, more than there are templates, until keys are denied.
    #[test]
    fn replies_are_those_without_templates() {
        let limiter = MemoryLimiter::new();
        let policies = ["3/h", "5/m sliding", "4/h; 9/d", "1/m", "6/m"];
        let policies = policies.map(|limits| Policy::named("api", limits).unwrap());
        let mut out = ReplyBuffer::default();
        let mut copied = 0;
        for round in 0..24 {
            for (index, policy) in policies.iter().enumerate().skip(round % 4) {
                let key = format!("key {index} {}", round % 2);
                let decision = limiter.check(policy, Key::new(key.as_bytes()).unwrap());
                for protocol in [Protocol::Two, Protocol::Three] {
                    out.protocol = protocol;
                    let shape = Shape::from_decision(protocol, &decision);
                    let is_known =
                        shape.is_some_and(|shape| out.templates.find(policy, shape).is_some());
                    copied += u32::from(is_known);
                    let found = encode(&mut out, policy, &decision);
                    let mut other = ReplyBuffer::default();
                    other.protocol = protocol;
                    let expected = encode(&mut other, policy, &decision);
                    assert_eq!(
                        found.escape_ascii().to_string(),
                        expected.escape_ascii().to_string()
                    );
                }
            }
        }
        assert!(copied > 10, "{copied}");
        assert_eq!(out.templates.all.len(), MAX_TEMPLATES);
    }
}
