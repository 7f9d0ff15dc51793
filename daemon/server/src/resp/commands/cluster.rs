//! `CLUSTER`: there is none, in the words that clients look for.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command = Command {
    arity: -1,
    ..Command::new("cluster", "Refused: a daemon is no cluster.", "server", answer)
};

fn answer(_: &mut Asking<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad("This instance has cluster support disabled"))
}
