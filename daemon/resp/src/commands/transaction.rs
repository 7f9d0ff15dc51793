//! Transactions: `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use crate::command::{Argument, Command, Flag, Keys};
use crate::context::{CommandContext, Transaction};
use crate::failure::Failure;

const GROUP: &str = "transactions";
const NOT_QUEUED: &[Flag] = &[Flag::Fast, Flag::NotQueued];

pub(super) const COMMANDS: [Command; 5] = [
    Command::new(
        "multi",
        "Queues the commands that follow until EXEC, at most limits.pipeline.",
        GROUP,
        multi,
    )
    .with_flags(NOT_QUEUED),
    Command::new(
        "exec",
        "Executes the queued commands in order, and returns all replies as one array. Each command \
         is decided on its own: those of other clients may be decided in between.",
        GROUP,
        exec,
    )
    .with_flags(NOT_QUEUED),
    Command::new("discard", "Discards the commands queued since MULTI.", GROUP, discard)
        .with_flags(NOT_QUEUED),
    Command {
        keys: Keys::All,
        ..Command::new(
            "watch",
            "Not supported: a check is atomic, and there are no values to watch.",
            GROUP,
            watch,
        )
        .with_flags(NOT_QUEUED)
        .with_arguments(&[Argument::key("key").multiple()])
    },
    Command::new("unwatch", "Does nothing: nothing is watched.", GROUP, |context| {
        context.out.ok();
        Ok(())
    }),
];

fn multi(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if context.session.transaction.is_some() {
        return Err(Failure::bad("MULTI calls can not be nested; send EXEC or DISCARD first"));
    }
    context.session.transaction = Some(Transaction::default());
    context.out.ok();
    Ok(())
}

fn exec(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let Some(transaction) = context.session.transaction.take() else {
        return Err(Failure::bad("EXEC without MULTI"));
    };
    if transaction.has_errors {
        let detail = "Transaction discarded because of previous errors.";
        return Err(Failure::new("EXECABORT", detail));
    }
    context.out.array(transaction.commands.len());
    // The replies to all commands may be long: the client reads the first while others wait.
    context.session.executing = transaction.commands.into_iter();
    Ok(())
}

fn discard(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if context.session.transaction.take().is_none() {
        return Err(Failure::bad("DISCARD without MULTI"));
    }
    context.out.ok();
    Ok(())
}

fn watch(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    Err(Failure::bad(if context.session.transaction.is_some() {
        "WATCH inside MULTI is not allowed"
    } else {
        "WATCH is not supported: a check is atomic, and there are no values to watch; leave it out"
    }))
}
