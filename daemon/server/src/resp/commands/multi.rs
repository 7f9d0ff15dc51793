//! `MULTI`: what follows is queued.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Command, Flag};
use crate::resp::transaction::Transaction;

pub(super) const COMMAND: Command = Command {
    flags: &[Flag::Fast, Flag::AtOnce],
    ..Command::new(
        "multi",
        "Queues the commands that follow until EXEC, at most limits.pipeline.",
        "transactions",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if asking.session.transaction.is_some() {
        return Err(Failure::bad("MULTI calls can not be nested; send EXEC or DISCARD first"));
    }
    asking.session.transaction = Some(Transaction::default());
    asking.out.ok();
    Ok(())
}
