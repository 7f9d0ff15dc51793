//! `RESET`: the connection is as if it had just been made.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::out::Protocol;
use crate::resp::table::{Command, Flag};

pub(super) const COMMAND: Command = Command {
    flags: &[Flag::Fast, Flag::NoAuth, Flag::AtOnce],
    ..Command::new(
        "reset",
        "Forgets the token, the name, the version of the protocol and what is queued.",
        "connection",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.session.reset();
    asking.out.protocol = Protocol::default();
    asking.scene.who = asking.session.who(asking.scene.remote, &asking.scene.live.access);
    asking.out.simple("RESET");
    Ok(())
}
