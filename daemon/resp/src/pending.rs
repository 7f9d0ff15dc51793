//! Replies to calls.

use tollgate_engine::{ActiveConfig, Call, Error, Outcome, ResponseKind};

use super::decision;
use super::failure::Failure;
use super::reply_buffer::{Protocol, ReplyBuffer};

/// How the result of a call is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplyFormat {
    /// As the operation defines it.
    Operation(ResponseKind),
    /// As the state of a key, with or without the ids of leases and reservations.
    Inspection { has_ids: bool },
    /// As the five integers of `CL.THROTTLE`.
    Throttle,
    /// As the number of keys of the command that had state; written with the last of them.
    KeyCount { is_last: bool },
    /// As the time until the key is forgotten, in seconds or milliseconds.
    TimeToLive { in_millis: bool },
}

/// The reply to a call that is executed once the batch is read.
#[derive(Debug)]
pub(super) struct PendingReply {
    pub(super) format: ReplyFormat,
    /// Where the reply is inserted among those that were written already.
    pub(super) position: usize,
    pub(super) protocol: Protocol,
}

impl ReplyFormat {
    /// Writes the result of a call.
    pub(super) fn write(
        self,
        active: &ActiveConfig,
        call: &Call<'_, '_>,
        result: Result<Outcome, Error>,
        count: &mut KeyCount,
        out: &mut ReplyBuffer,
    ) -> Result<(), Failure> {
        if let ReplyFormat::KeyCount { is_last } = self {
            count.add(result);
            return if is_last { std::mem::take(count).write(out) } else { Ok(()) };
        }
        let outcome = result?;
        let hint = active.hint(call, &outcome);
        let hint = hint.as_deref();
        let Some(check) = call.checks.as_slice().first() else {
            unreachable!("a call has at least one check");
        };
        let policy = &*check.policy;
        match (self, outcome) {
            (ReplyFormat::Operation(ResponseKind::Change), Outcome::Decision(decision)) => {
                decision::write_change(out, policy, call.action, &decision, hint);
            }
            (ReplyFormat::Operation(ResponseKind::Change), Outcome::Decisions(answer)) => {
                decision::write_changes(out, call.checks.as_slice(), call.action, &answer);
            }
            (ReplyFormat::Operation(_), Outcome::Decision(decision)) => {
                decision::write(out, policy, &decision, hint);
            }
            (ReplyFormat::Operation(_), Outcome::Decisions(answer)) => {
                decision::write_all(out, call.checks.as_slice(), &answer);
            }
            (ReplyFormat::Inspection { has_ids }, Outcome::Inspection(inspection)) => {
                decision::write_inspection(out, policy, &inspection, has_ids, hint);
            }
            (ReplyFormat::Throttle, Outcome::Decision(decision)) => {
                decision::write_throttle(out, policy, &decision);
            }
            (ReplyFormat::TimeToLive { in_millis }, Outcome::Inspection(inspection)) => {
                match inspection.recovers_after {
                    Some(time) if in_millis => out.count(time.get().div_ceil(1_000)),
                    Some(time) => out.count(time.secs_rounded_up()),
                    // The reply of Redis for a key that does not exist.
                    None => out.integer(-2),
                }
            }
            (format, outcome) => unreachable!("{format:?} cannot format {outcome:?}"),
        }
        Ok(())
    }
}

/// The number of a command's keys that had state. A command has one reply: if one of its keys
/// fails, that is the failure.
#[derive(Debug, Default)]
pub(super) struct KeyCount {
    count: u64,
    failure: Option<Failure>,
}

impl KeyCount {
    fn add(&mut self, result: Result<Outcome, Error>) {
        let had_state = match result {
            Ok(Outcome::Decision(decision)) => decision.changed,
            Ok(Outcome::Inspection(inspection)) => inspection.recovers_after.is_some(),
            Ok(Outcome::Decisions(_)) => unreachable!("keys are counted one by one"),
            Err(error) => {
                self.failure = Some(error.into());
                return;
            }
        };
        self.count += u64::from(had_state);
    }

    fn write(self, out: &mut ReplyBuffer) -> Result<(), Failure> {
        match self.failure {
            Some(failure) => Err(failure),
            None => {
                out.count(self.count);
                Ok(())
            }
        }
    }
}
