//! `EXEC`: does what was queued, in order.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::session::TOO_MUCH;
use crate::resp::table::{Command, Flag};

pub(super) const COMMAND: Command = Command {
    flags: &[Flag::Fast, Flag::AtOnce],
    ..Command::new(
        "exec",
        "Does what was queued since MULTI, in order, and answers all of it as one array. Each \
         command is decided by itself: others may be decided between them.",
        "transactions",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let Some(transaction) = asking.session.transaction.take() else {
        return Err(Failure::bad("EXEC without MULTI"));
    };
    if transaction.is_flawed {
        let detail = "Transaction discarded because of previous errors.";
        return Err(Failure::of("EXECABORT", detail));
    }
    asking.out.array(transaction.commands.len());
    for (command, kept) in &transaction.commands {
        let args = kept.args();
        let (session, scene, out) = (&mut *asking.session, &mut *asking.scene, &mut *asking.out);
        Asking { session, scene, out, args, command }.answer();
        if asking.out.len() > TOO_MUCH {
            break;
        }
    }
    Ok(())
}
