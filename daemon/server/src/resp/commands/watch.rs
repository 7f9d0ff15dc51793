//! `WATCH`: there are no values that could change.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Argument, Command, Flag, Keys, Type};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    flags: &[Flag::Fast, Flag::AtOnce],
    keys: Keys::All,
    arguments: &[Argument::new("key", Type::Key).multiple()],
    ..Command::new(
        "watch",
        "Refused: limits are decided whole, and there are no values to watch.",
        "transactions",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad(if asking.session.transaction.is_some() {
        "WATCH inside MULTI is not allowed"
    } else {
        "WATCH is not supported: a check is decided whole, and there are no values to watch; leave \
         it out"
    }))
}
