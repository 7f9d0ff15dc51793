//! `DISCARD`: forgets what was queued.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Command, Flag};

pub(super) const COMMAND: Command = Command {
    flags: &[Flag::Fast, Flag::AtOnce],
    ..Command::new("discard", "Forgets what was queued since MULTI.", "transactions", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if asking.session.transaction.take().is_none() {
        return Err(Failure::bad("DISCARD without MULTI"));
    }
    asking.out.ok();
    Ok(())
}
