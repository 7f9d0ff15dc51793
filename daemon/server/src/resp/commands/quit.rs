//! `QUIT`: the end of the connection, once all before it is answered.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Command, Flag};

pub(super) const COMMAND: Command = Command {
    arity: -1,
    flags: &[Flag::Fast, Flag::NoAuth, Flag::AtOnce],
    ..Command::new("quit", "Closes the connection.", "connection", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.ok();
    asking.session.is_closing = true;
    Ok(())
}
