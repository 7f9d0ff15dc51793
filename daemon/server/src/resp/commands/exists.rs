//! `EXISTS`: whether anything is kept of keys of `CL.THROTTLE`.

use tollgate::Cost;

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::question::{Asks, OwnCheck, Question, Reply};
use crate::resp::table::{Argument, Command, Flag, Keys, Type};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    flags: &[Flag::ReadOnly, Flag::Fast],
    keys: Keys::All,
    arguments: &[Argument::new("key", Type::Key).multiple()],
    scopes: &[Scope::Check, Scope::Read],
    ..Command::new(
        "exists",
        "Answers of how many keys of CL.THROTTLE anything is kept; a key is forgotten once it has \
         recovered.",
        "generic",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let last = asking.args.len() - 1;
    look(asking, |index| Reply::Sum { is_last: index == last })
}

/// Looks at each key.
pub(super) fn look(
    asking: &mut Asking<'_, '_>,
    reply: impl Fn(usize) -> Reply,
) -> Result<(), Failure> {
    let keys: Vec<_> = asking.args.from(1).collect();
    keys.iter().try_for_each(|key| asking.key(key).map(drop))?;
    let policy = asking.scene.daemon.resp.throttles.any();
    let policy = policy.map_err(|error| Failure::bad(error.to_string()))?;
    asking.may_use(&policy)?;
    for (index, key) in (1..).zip(keys) {
        let check = OwnCheck { policy: policy.clone(), key: key.into(), cost: Cost::ZERO };
        let (asks, reply) = (Asks::Inspect(check), reply(index));
        asking.ask(Question { asks, reply, record: None })?;
    }
    Ok(())
}
