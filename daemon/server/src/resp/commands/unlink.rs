//! `UNLINK`: resets keys of `CL.THROTTLE`, as `DEL` does.

use super::del;
use crate::resp::table::Command;

pub(super) const COMMAND: Command = Command { name: "unlink", summary: "As DEL.", ..del::COMMAND };
