//! The way of every verb from its arguments to its answer.

use tollgate::{Operation, Policy};

use super::asking::{Asking, Scene};
use super::decision::{self, Shape};
use super::failure::Failure;
use super::given::{Given, Own, Subject};
use super::question::{Asks, OwnCheck, Question, Reply};
use super::table::Command;
use super::word::Word;
use crate::audit::{self, Record};
use crate::config::Scope;

/// What a verb takes, and what it asks of the store.
#[derive(Debug)]
pub(super) struct Spoken {
    pub(super) words: &'static [Word],
    /// Whether `AND` may join several checks.
    pub(super) takes_several: bool,
    pub(super) reply: Reply,
    /// What it asks of the store.
    pub(super) verb: fn(&Own<'_>) -> Result<Operation, Failure>,
}

/// The most bytes of a policy's name that the audit is told where there is no such policy.
const MAX_SHOWN: usize = 128;

/// Answers a verb.
pub(super) fn answer(asking: &mut Asking<'_, '_>, spoken: &Spoken) -> Result<(), Failure> {
    if !asking.command.is_for_operators() {
        let given = Given::read(asking, spoken.words, spoken.takes_several)?;
        let verb = (spoken.verb)(&given.own)?;
        return ask(asking, spoken, given, verb, None);
    }
    let verb = audited(asking.command);
    let record = begin_record(asking.scene, verb);
    if let Ok(subject) = Subject::read(asking, 1) {
        let policy = String::from_utf8_lossy(subject.policy);
        record.is_about(audit::Subject {
            policy: policy.chars().take(MAX_SHOWN).collect(),
            key: asking.scene.live.shown(subject.key),
        });
    }
    let read = must_operate(asking, verb).and_then(|()| {
        let given = Given::read(asking, spoken.words, spoken.takes_several)?;
        let verb = (spoken.verb)(&given.own)?;
        Ok((given, verb))
    });
    match read {
        Ok((given, verb)) => {
            record.asks(&verb, given.first.cost.get());
            ask(asking, spoken, given, verb, Some(record))
        }
        Err(failure) => {
            if failure.is_refusal {
                record.refused(failure.detail());
            } else {
                record.failed(failure.detail());
            }
            Err(failure)
        }
    }
}

/// The verb that an operator's command is to the audit.
pub(super) fn audited(command: &Command) -> &'static str {
    command.name.strip_prefix("tollgate.").unwrap_or("reset")
}

/// What the audit is to know of an operator's command.
pub(super) fn begin_record<'a>(scene: &Scene<'a>, verb: &'static str) -> Record<'a> {
    let who = scene.who.map_or("nobody known", |who| who.name());
    scene.daemon.metrics.audited(verb);
    Record::new(verb, who, scene.remote)
}

/// Refuses an operator's command to whoever is none.
pub(super) fn must_operate(asking: &Asking<'_, '_>, verb: &str) -> Result<(), Failure> {
    Ok(asking.scene.known()?.must_have(&[Scope::Operate], verb)?)
}

fn ask<'s, 'a>(
    asking: &mut Asking<'s, 'a>,
    spoken: &Spoken,
    given: Given<'s, 'a>,
    verb: Operation,
    record: Option<Record<'a>>,
) -> Result<(), Failure> {
    let Given { first, more, own } = given;
    // The plain check, which is nearly all of them.
    if let (Operation::Check { lease: None }, None, true, Some(memory)) =
        (verb, own.request_id, more.is_empty(), asking.scene.memory)
    {
        let decision = memory.check_cost(&first.policy, first.key, first.cost);
        asking.scene.counted.decided(&first.policy, &decision);
        decision::write(asking.out, &first.policy, &decision, Shape::Decision);
        return Ok(());
    }
    let reply = match spoken.reply {
        Reply::Decision(shape) if !more.is_empty() => Reply::Several(shape),
        reply => reply,
    };
    let mut checks = [first].into_iter().chain(more).map(|x| OwnCheck {
        policy: Policy::clone(&x.policy),
        key: x.key.as_bytes().into(),
        cost: x.cost,
    });
    let asks = match (reply, checks.next()) {
        (Reply::Inspection, Some(check)) => Asks::Inspect(check),
        (_, first) => {
            let checks = first.into_iter().chain(checks).collect();
            Asks::Decide { verb, checks, request_id: own.request_id.map(Into::into) }
        }
    };
    asking.ask(Question { asks, reply, record })
}
