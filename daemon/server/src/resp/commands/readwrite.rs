//! `READWRITE`: the end of `READONLY`.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command =
    Command::new("readwrite", "Does nothing: there are no replicas.", "connection", answer);

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.ok();
    Ok(())
}
