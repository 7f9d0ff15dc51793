//! `TIME`: what time it is.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::Command;

pub(super) const COMMAND: Command = Command::new(
    "time",
    "Answers the time in seconds since 1970, and the microseconds beyond them.",
    "server",
    answer,
);

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let memory = asking.scene.memory.map(|memory| memory.now());
    let now = memory.unwrap_or_else(|| asking.scene.daemon.clock.now()).as_micros();
    asking.out.array(2);
    asking.out.text(&(now / 1_000_000).to_string());
    asking.out.text(&(now % 1_000_000).to_string());
    Ok(())
}
