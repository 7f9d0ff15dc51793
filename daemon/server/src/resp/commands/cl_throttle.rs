//! `CL.THROTTLE`: decide as redis-cell does, under limits that the command itself gives.

use tollgate::{Cost, LimitError, Operation};

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::decision;
use crate::resp::failure::{Failure, shown};
use crate::resp::question::{Asks, OwnCheck, Question, Reply};
use crate::resp::table::{Argument, Command, Flag, Keys, Type};
use crate::resp::throttles::Quota;

pub(super) const COMMAND: Command = Command {
    arity: -5,
    flags: &[Flag::Write, Flag::Fast],
    keys: Keys::First,
    arguments: &[
        Argument::new("key", Type::Key),
        Argument::new("max-burst", Type::Integer),
        Argument::new("count", Type::Integer),
        Argument::new("period", Type::Integer),
        Argument::new("quantity", Type::Integer).optional(),
    ],
    scopes: &[Scope::Check],
    ..Command::new(
        "cl.throttle",
        "Decides and charges a quantity, 1 unless given, under count tokens in period seconds and \
         max-burst more at once; answers whether it is limited (0 or 1), the limit, what remains, \
         and in seconds when to try again (-1 if that is now or never) and when all is recovered.",
        "throttle",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if asking.args.len() > 6 {
        return Err(asking.wrong_number());
    }
    let quota = quota(asking)?;
    let cost = match asking.args.get(5) {
        None => Cost::ONE,
        Some(quantity) => cost(quantity)?,
    };
    let key = asking.key(asking.arg(1))?;
    let shared = &asking.scene.daemon.resp.throttles;
    let policy =
        asking.session.throttles.get(quota, shared).map_err(|error| does_not_fit(&error))?;
    asking.scene.known()?.must_be_for(policy.name())?;
    if let Some(memory) = asking.scene.memory {
        let decision = memory.check_cost(policy, key, cost);
        asking.scene.counted.decided(policy, &decision);
        decision::write_throttle(asking.out, policy, &decision);
        return Ok(());
    }
    let check = OwnCheck { policy: policy.clone(), key: key.as_bytes().into(), cost };
    let verb = Operation::Check { lease: None };
    let asks = Asks::Decide { verb, checks: vec![check], request_id: None };
    asking.ask(Question { asks, reply: Reply::Throttle, record: None })
}

/// The numbers of the limit; which of them cannot be one, and why.
#[inline]
fn quota(asking: &Asking<'_, '_>) -> Result<Quota, Failure> {
    let max_burst = integer("max_burst", asking.arg(2))?;
    let count = integer("count", asking.arg(3))?;
    let period = integer("period", asking.arg(4))?;
    match (u64::try_from(max_burst), u64::try_from(count), u64::try_from(period)) {
        (Ok(max_burst), Ok(count @ 1..), Ok(period @ 1..)) => {
            Ok(Quota { capacity: max_burst + 1, count, period })
        }
        (Err(_), ..) => {
            Err(Failure::bad(format!("max_burst is {max_burst}; it must be 0 or more")))
        }
        (_, Err(_), _) => Err(Failure::bad(format!("count is {count}; it must be 1 or more"))),
        (.., Err(_)) => Err(Failure::bad(format!("period is {period}; it must be 1 or more"))),
        _ => {
            let detail = "count and period must be 1 or more";
            Err(Failure::bad(format!("Zero rates are not supported; {detail}")))
        }
    }
}

fn cost(quantity: &[u8]) -> Result<Cost, Failure> {
    let units = integer("quantity", quantity)?;
    u64::try_from(units).ok().and_then(Cost::new).ok_or_else(|| {
        let remedy = if units < 0 {
            "it must be 0 or more, and nothing gives back"
        } else {
            "it must be at most 9007199254740991"
        };
        Failure::bad(format!("quantity is {units}; {remedy}"))
    })
}

/// An integer of 64 bits, in as few instructions as most need.
#[inline]
fn integer(name: &str, bytes: &[u8]) -> Result<i64, Failure> {
    match digits(bytes) {
        Some(value) => Ok(value),
        None => signed(name, bytes),
    }
}

/// The value of up to 18 digits, which fit whatever they are.
#[inline]
fn digits(bytes: &[u8]) -> Option<i64> {
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
fn signed(name: &str, bytes: &[u8]) -> Result<i64, Failure> {
    let parsed = std::str::from_utf8(bytes).ok().and_then(|x| x.parse().ok());
    parsed.ok_or_else(|| {
        let (shown, remedy) = (shown(bytes), "write digits alone, at most 9223372036854775807");
        Failure::bad(format!("Couldn't parse as integer: {name} is {shown}; {remedy}"))
    })
}

#[cold]
fn does_not_fit(error: &LimitError) -> Failure {
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
