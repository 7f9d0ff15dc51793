//! `PTTL`: how long a key of `CL.THROTTLE` is known, in milliseconds.

use super::{exists::look, ttl};
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::question::Reply;
use crate::resp::table::Command;

pub(super) const COMMAND: Command = Command {
    name: "pttl",
    summary: "Answers in how many milliseconds, rounded up, a key of CL.THROTTLE will have \
              recovered; -2 if it has.",
    answer,
    ..ttl::COMMAND
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    look(asking, |_| Reply::TimeToLive { in_millis: true })
}
