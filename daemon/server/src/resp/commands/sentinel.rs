//! `SENTINEL`: this is none.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command = Command {
    arity: -1,
    ..Command::new("sentinel", "Refused: a daemon is no sentinel.", "server", answer)
};

fn answer(_: &mut Asking<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad("this is no sentinel; give the client this address as a server of its own"))
}
