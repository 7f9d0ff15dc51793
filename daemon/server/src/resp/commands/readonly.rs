//! `READONLY`: clients of clusters send it to replicas; here it says nothing new.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command =
    Command::new("readonly", "Does nothing: there are no replicas.", "connection", answer);

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.ok();
    Ok(())
}
