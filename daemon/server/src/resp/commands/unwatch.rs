//! `UNWATCH`: nothing is watched.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command =
    Command::new("unwatch", "Does nothing: nothing is watched.", "transactions", answer);

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.ok();
    Ok(())
}
