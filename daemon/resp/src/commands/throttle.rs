//! `CL.THROTTLE`: the command of redis-cell, with its limit in the arguments.

use std::borrow::Cow;

use tollgate::{Cost, LimitError, Operation};
use tollgate_engine::{Action, Call, CheckRequest, Checks};

use crate::command::{Argument, Command, Flag, Keys};
use crate::context::CommandContext;
use crate::deferred::CheckReply;
use crate::failure::{Failure, quoted};
use crate::pending::ReplyFormat;
use crate::throttle_policies::Quota;
use tollgate_config::{FailureMode, Scope};

pub(super) const CL_THROTTLE: Command = Command {
    keys: Keys::First,
    scopes: &[Scope::Check],
    ..Command::new(
        "cl.throttle",
        "Decides and charges a quantity (default 1) under count tokens per period in seconds and a \
         burst of max-burst; returns whether it is limited (0 or 1), the limit, what remains, and \
         in seconds when to retry (-1 if now or never) and when the limit is fully recovered. While \
         the store is unavailable, `resp.throttle_on_store_error` decides.",
        "throttle",
        execute,
    )
    .with_flags(&[Flag::Write, Flag::Fast, Flag::Deferring])
    .with_arguments(&[
        Argument::key("key"),
        Argument::integer("max-burst"),
        Argument::integer("count"),
        Argument::integer("period"),
        Argument::integer("quantity").optional(),
    ])
};

fn execute(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if context.args.len() > 6 {
        return Err(context.wrong_arity());
    }
    let quota = parse_quota(context)?;
    let cost = match context.args.get(5) {
        None => Cost::ONE,
        Some(quantity) => parse_cost(quantity)?,
    };
    let key = context.key(context.arg(1))?;
    let shared = &context.batch.state.throttle_policies;
    let policy = context
        .session
        .throttle_policies
        .get(quota, shared)
        .map_err(|error| invalid_limit(&error))?;
    context.batch.principal()?.authorize_policy(policy.name())?;
    // Only the memory store decides at once, where no call waits: these policies are never leased.
    if context.batch.engine_batch.memory().is_some() {
        context.session.deferred.add(policy, key, cost, CheckReply::Throttle);
        return Ok(());
    }
    let check = CheckRequest::new(Cow::Owned(policy.clone()), Cow::Borrowed(key.as_bytes()), cost);
    let action = Action::Execute(Operation::Check { lease: None });
    let requires_store = context.batch.active.throttle_on_store_error == FailureMode::Error;
    let call = Call::new(action, Checks::One(check)).with_store_required(requires_store);
    context.submit(call, ReplyFormat::Throttle)
}

#[inline]
fn parse_quota(context: &CommandContext<'_, '_>) -> Result<Quota, Failure> {
    let max_burst = parse_integer("max_burst", context.arg(2))?;
    let count = parse_integer("count", context.arg(3))?;
    let period = parse_integer("period", context.arg(4))?;
    match (u64::try_from(max_burst), u64::try_from(count), u64::try_from(period)) {
        (Ok(max_burst), Ok(count @ 1..), Ok(period @ 1..)) => {
            let on_store_error = context.batch.active.throttle_on_store_error.decision();
            Ok(Quota { capacity: max_burst + 1, count, period, on_store_error })
        }
        (Err(_), ..) => {
            Err(Failure::bad(format!("max_burst is {max_burst}; it must be 0 or more")))
        }
        (_, Err(_), _) => Err(Failure::bad(format!("count is {count}; it must be 1 or more"))),
        (.., Err(_)) => Err(Failure::bad(format!("period is {period}; it must be 1 or more"))),
        _ => Err(Failure::bad("Zero rates are not supported; count and period must be 1 or more")),
    }
}

fn parse_cost(quantity: &[u8]) -> Result<Cost, Failure> {
    let units = parse_integer("quantity", quantity)?;
    u64::try_from(units).ok().and_then(Cost::new).ok_or_else(|| {
        let remedy = if units < 0 {
            "it must be 0 or more; a negative one does not give back"
        } else {
            "it must be at most 9007199254740991"
        };
        Failure::bad(format!("quantity is {units}; {remedy}"))
    })
}

/// Parses a 64-bit integer; the usual ones in few instructions.
#[inline]
fn parse_integer(name: &str, bytes: &[u8]) -> Result<i64, Failure> {
    match parse_digits(bytes) {
        Some(value) => Ok(value),
        None => parse_signed(name, bytes),
    }
}

/// Parses up to 18 digits, which always fit.
#[inline]
fn parse_digits(bytes: &[u8]) -> Option<i64> {
    if !(1..=18).contains(&bytes.len()) {
        return None;
    }
    let mut value = 0;
    for byte in bytes {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(value)
}

#[cold]
fn parse_signed(name: &str, bytes: &[u8]) -> Result<i64, Failure> {
    let parsed = std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        let remedy = "write digits only, at most 9223372036854775807";
        Failure::bad(format!("Couldn't parse as integer: {name} is {}; {remedy}", quoted(bytes)))
    })
}

#[cold]
fn invalid_limit(error: &LimitError) -> Failure {
    match error {
        LimitError::Inexact { limit, nearest } => Failure::bad(format!(
            "{limit} is too large to be decided exactly; the nearest lower limit that fits is \
             {nearest}, which is max_burst {}, count {}, period {}",
            nearest.capacity() - 1,
            nearest.count,
            nearest.window.secs_rounded_up(),
        )),
        other => Failure::bad(format!("period: {other}")),
    }
}
