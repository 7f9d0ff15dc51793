//! Redis commands on the keys of `CL.THROTTLE`: `DEL`, `UNLINK`, `EXISTS`, `TTL`, `PTTL`.

use std::borrow::Cow;

use tollgate::{Cost, Operation, Policy};
use tollgate_engine::{Action, Call, CheckRequest, Checks};

use crate::command::{Argument, Command, Flag, Function, Keys};
use crate::context::CommandContext;
use crate::failure::Failure;
use crate::pending::ReplyFormat;
use crate::throttle_policies::NAME;
use tollgate_config::Scope;

const GROUP: &str = "generic";
/// The operation that the audit records deletions as.
const RESET: &str = "reset";

pub(super) const COMMANDS: [Command; 5] = [
    DEL,
    Command { name: "unlink", summary: "As DEL.", ..DEL },
    Command {
        keys: Keys::All,
        ..read_command(
            "exists",
            "Returns how many keys of CL.THROTTLE have state; a key that has recovered has none.",
            exists,
        )
        .with_arguments(MANY_KEYS)
    },
    read_command(
        "ttl",
        "Returns in how many seconds, rounded up, a key of CL.THROTTLE will have recovered; -2 if \
         it has.",
        |context| inspect(context, |_| ReplyFormat::TimeToLive { in_millis: false }),
    ),
    read_command(
        "pttl",
        "Returns in how many milliseconds, rounded up, a key of CL.THROTTLE will have recovered; \
         -2 if it has.",
        |context| inspect(context, |_| ReplyFormat::TimeToLive { in_millis: true }),
    ),
];

const ONE_KEY: &[Argument] = &[Argument::key("key")];
const MANY_KEYS: &[Argument] = &[Argument::key("key").multiple()];

const DEL: Command = Command {
    keys: Keys::All,
    scopes: &[Scope::Operate],
    audited_as: Some(RESET),
    ..Command::new(
        "del",
        "Resets keys of CL.THROTTLE; returns how many of them had state.",
        GROUP,
        delete,
    )
    .with_flags(&[Flag::Write])
    .with_arguments(MANY_KEYS)
};

/// A command that reads one key.
const fn read_command(name: &'static str, summary: &'static str, function: Function) -> Command {
    Command {
        keys: Keys::First,
        scopes: &[Scope::Check, Scope::Read],
        ..Command::new(name, summary, GROUP, function)
            .with_flags(&[Flag::ReadOnly, Flag::Fast])
            .with_arguments(ONE_KEY)
    }
}

/// Resets each key, with an audit record each.
fn delete(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let keys = parse_keys(context)?;
    let policy = policy(context)?;
    let authorized = context.batch.principal().and_then(|principal| {
        principal.authorize(context.command.scopes, RESET)?;
        principal.authorize_policy(policy.name())?;
        Ok(())
    });
    let last = keys.len() - 1;
    for (index, key) in keys.into_iter().enumerate() {
        let mut audit = context.batch.audit(RESET);
        audit.set_subject(context.batch.active, NAME, key);
        if let Err(failure) = &authorized {
            audit.fail(failure.is_denial, failure.detail());
            continue;
        }
        let checks = Checks::One(check(&policy, key));
        let call = Call::new(Action::Execute(Operation::Reset), checks).with_audit(audit);
        context.submit(call, ReplyFormat::KeyCount { is_last: index == last })?;
    }
    authorized
}

fn exists(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let last = context.args.len() - 2;
    inspect(context, |index| ReplyFormat::KeyCount { is_last: index == last })
}

/// Inspects each key.
fn inspect(
    context: &mut CommandContext<'_, '_>,
    format: impl Fn(usize) -> ReplyFormat,
) -> Result<(), Failure> {
    let keys = parse_keys(context)?;
    let policy = policy(context)?;
    context.batch.principal()?.authorize_policy(policy.name())?;
    for (index, key) in keys.into_iter().enumerate() {
        let call = Call::new(Action::Inspect, Checks::One(check(&policy, key)));
        context.submit(call, format(index))?;
    }
    Ok(())
}

/// All arguments as keys.
fn parse_keys<'s>(context: &CommandContext<'s, '_>) -> Result<Vec<&'s [u8]>, Failure> {
    context.args.from(1).map(|key| context.key(key).map(|key| key.as_bytes())).collect()
}

/// A policy of `CL.THROTTLE`: its state does not depend on the limits.
fn policy(context: &CommandContext<'_, '_>) -> Result<Policy, Failure> {
    let policy = context.batch.state.throttle_policies.any();
    policy.map_err(|error| Failure::bad(error.to_string()))
}

fn check<'a>(policy: &'a Policy, key: &'a [u8]) -> CheckRequest<'a> {
    CheckRequest::new(Cow::Borrowed(policy), Cow::Borrowed(key), Cost::ZERO)
}
