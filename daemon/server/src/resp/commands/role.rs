//! `ROLE`: a master, to clients that look for one.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command =
    Command::new("role", "Answers that this is a master without replicas.", "server", answer);

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.array(3);
    asking.out.text("master");
    asking.out.integer(0);
    asking.out.array(0);
    Ok(())
}
