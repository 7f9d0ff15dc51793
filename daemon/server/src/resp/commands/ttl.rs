//! `TTL`: how long a key of `CL.THROTTLE` is known, in seconds.

use super::exists::look;
use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::question::Reply;
use crate::resp::table::{Argument, Command, Flag, Keys, Type};

pub(super) const COMMAND: Command = Command {
    arity: 2,
    flags: &[Flag::ReadOnly, Flag::Fast],
    keys: Keys::First,
    arguments: &[Argument::new("key", Type::Key)],
    scopes: &[Scope::Check, Scope::Read],
    ..Command::new(
        "ttl",
        "Answers in how many seconds, rounded up, a key of CL.THROTTLE will have recovered; -2 if \
         it has.",
        "generic",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    look(asking, |_| Reply::TimeToLive { in_millis: false })
}
