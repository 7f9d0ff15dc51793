//! What a command asks of the store, and how the answer is written.

use tollgate::{
    Answer, Check, Cost, Decision, Inspection, Key, MemoryLimiter, Operation, Policy, Request,
    RequestError, StoreError,
};

use super::asking::Asking;
use super::decision::{self, Shape};
use super::failure::Failure;
use super::out::{Out, Protocol};
use crate::audit::Record;
use crate::metrics::Batch;

/// What is asked of the store, with all that it takes to write the answer: on Redis that is later.
#[derive(Debug)]
pub(super) struct Question<'a> {
    pub(super) asks: Asks,
    pub(super) reply: Reply,
    /// What the audit is to know of it, if it is an operator's.
    pub(super) record: Option<Record<'a>>,
}

/// What is asked of the store.
#[derive(Debug)]
pub(super) enum Asks {
    Decide { verb: Operation, checks: Vec<OwnCheck>, request_id: Option<Box<[u8]>> },
    Inspect(OwnCheck),
}

/// A check with its own bytes.
#[derive(Debug)]
pub(super) struct OwnCheck {
    pub(super) policy: Policy,
    pub(super) key: Box<[u8]>,
    pub(super) cost: Cost,
}

impl OwnCheck {
    pub(super) fn check(&self) -> Check<'_> {
        Check { policy: &self.policy, key: &self.key, cost: self.cost }
    }
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// A decision as a map.
    Decision(Shape),
    /// Several, with what holds for all of them.
    Several(Shape),
    /// The five integers of `CL.THROTTLE`.
    Throttle,
    /// What is kept of a key.
    Inspection,
    /// For how many of a command's keys something was there; written with the last of them.
    Sum { is_last: bool },
    /// For how long a key is known, in seconds or milliseconds.
    TimeToLive { in_millis: bool },
}

/// What the store has said.
#[derive(Debug)]
pub(super) enum Said {
    Decisions(Answer),
    Inspection(Inspection),
}

/// A question that is asked once the batch is read, and where its answer belongs among the replies
/// that are there already.
#[derive(Debug)]
pub(super) struct Placed<'a> {
    pub(super) question: Question<'a>,
    pub(super) at: usize,
    pub(super) protocol: Protocol,
}

impl<'a> Asking<'_, 'a> {
    /// Asks the store: memory at once, another once the batch is read.
    pub(super) fn ask(&mut self, question: Question<'a>) -> Result<(), Failure> {
        let Some(memory) = self.scene.memory else {
            let (at, protocol) = (self.out.len(), self.out.protocol);
            self.scene.questions.push(Placed { question, at, protocol });
            return Ok(());
        };
        let said = question.ask_memory(memory).map_err(StoreError::from);
        question.write(said, &mut self.scene.counted, &mut self.scene.sum, self.out)
    }
}

impl Question<'_> {
    fn ask_memory(&self, memory: &MemoryLimiter) -> Result<Said, RequestError> {
        match &self.asks {
            Asks::Inspect(inspect) => {
                Ok(Said::Inspection(memory.inspect(&inspect.policy, Key::new(&inspect.key)?)))
            }
            Asks::Decide { verb, checks, request_id } => {
                let request_id = request_id.as_deref();
                if let [only] = &checks[..] {
                    let checks = [only.check()];
                    let request = Request { operation: *verb, checks: &checks, request_id };
                    return memory.decide(&request).map(Said::Decisions);
                }
                let checks: Vec<_> = checks.iter().map(OwnCheck::check).collect();
                let request = Request { operation: *verb, checks: &checks, request_id };
                memory.decide(&request).map(Said::Decisions)
            }
        }
    }

    /// Counts and writes what the store has said.
    pub(super) fn write(
        self,
        said: Result<Said, StoreError>,
        counted: &mut Batch<'_>,
        sum: &mut Sum,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let policies = || match &self.asks {
            Asks::Decide { checks, .. } => &checks[..],
            Asks::Inspect(inspect) => std::slice::from_ref(inspect),
        };
        match &said {
            Err(error) if self.has_verdict() => {
                counted.refused(policies().iter().map(|policy| &policy.policy), error);
            }
            Ok(Said::Decisions(answer)) if self.has_verdict() => {
                let policies = policies().iter().map(|policy| &policy.policy);
                counted.decided_together(policies.zip(&answer.decisions));
            }
            _ => {}
        }
        match said {
            Ok(said) => {
                if let (Some(record), Said::Decisions(answer)) = (&self.record, &said)
                    && let Some(decision) = answer.decisions.first()
                {
                    record.is_decided(decision);
                }
                if let Reply::Sum { is_last } = self.reply {
                    sum.add(&said);
                    if is_last {
                        sum.write(out)?;
                    }
                } else {
                    self.reply.write(policies(), &said, out);
                }
                if let Some(record) = self.record {
                    record.done();
                }
                Ok(())
            }
            Err(error) => {
                let failure = Failure::from(error);
                if let Some(record) = self.record {
                    record.failed(failure.detail());
                }
                match self.reply {
                    Reply::Sum { is_last } => {
                        sum.failure = Some(failure);
                        if is_last { sum.write(out) } else { Ok(()) }
                    }
                    _ => Err(failure),
                }
            }
        }
    }

    /// Whether what is answered is counted among the decisions.
    fn has_verdict(&self) -> bool {
        match &self.asks {
            Asks::Decide { verb, .. } => verb.decides() && *verb != Operation::Peek,
            Asks::Inspect(_) => false,
        }
    }
}

impl Reply {
    fn write(self, checks: &[OwnCheck], said: &Said, out: &mut Out) {
        let Some(first) = checks.first() else { return };
        match (self, said) {
            (Reply::Decision(shape), Said::Decisions(answer)) => {
                decision::write(out, &first.policy, &only(answer), shape);
            }
            (Reply::Several(shape), Said::Decisions(answer)) => {
                let policies = checks.iter().map(|check| &check.policy);
                decision::write_several(out, policies, answer, shape);
            }
            (Reply::Throttle, Said::Decisions(answer)) => {
                decision::write_throttle(out, &first.policy, &only(answer));
            }
            (Reply::TimeToLive { in_millis }, Said::Inspection(inspection)) => {
                let left = inspection.recovers_after.map(|recovers_after| match in_millis {
                    true => recovers_after.get().div_ceil(1_000),
                    false => recovers_after.secs_rounded_up(),
                });
                match left {
                    Some(left) => out.count(left),
                    // As Redis says of a key that is not there.
                    None => out.integer(-2),
                }
            }
            (_, Said::Inspection(inspection)) => {
                decision::write_inspection(out, &first.policy, inspection)
            }
            (_, Said::Decisions(answer)) => {
                decision::write(out, &first.policy, &only(answer), Shape::Decision);
            }
        }
    }
}

/// Of how many keys of a command something was there. It has one reply, whatever becomes of each.
#[derive(Debug, Default)]
pub(super) struct Sum {
    count: u64,
    failure: Option<Failure>,
}

impl Sum {
    fn add(&mut self, said: &Said) {
        self.count += u64::from(match said {
            Said::Decisions(answer) => only(answer).changed,
            Said::Inspection(inspection) => inspection.recovers_after.is_some(),
        });
    }

    fn write(&mut self, out: &mut Out) -> Result<(), Failure> {
        let sum = std::mem::take(self);
        match sum.failure {
            Some(failure) => Err(failure),
            None => {
                out.count(sum.count);
                Ok(())
            }
        }
    }
}

fn only(answer: &Answer) -> Decision {
    answer.decisions.first().cloned().unwrap_or_default()
}
