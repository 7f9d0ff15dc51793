//! Transactions: `MULTI`, `EXEC`, `DISCARD`, `WATCH`, `UNWATCH`.

use crate::command::{Argument, ArgumentType, Command, Flag, Keys};
use crate::context::{CommandContext, Transaction};
use crate::failure::Failure;

const NOT_QUEUED: &[Flag] = &[Flag::Fast, Flag::NotQueued];

pub(super) const COMMANDS: [Command; 5] = [
    Command {
        flags: NOT_QUEUED,
        ..Command::new(
            "multi",
            "Queues the commands that follow until EXEC, at most limits.pipeline.",
            "transactions",
            multi,
        )
    },
    Command {
        flags: NOT_QUEUED,
        ..Command::new(
            "exec",
            "Executes the queued commands in order, and returns all replies as one array. Each \
             command is decided on its own: those of other clients may be decided in between.",
            "transactions",
            exec,
        )
    },
    Command {
        flags: NOT_QUEUED,
        ..Command::new(
            "discard",
            "Discards the commands queued since MULTI.",
            "transactions",
            discard,
        )
    },
    Command {
        arity: -2,
        flags: NOT_QUEUED,
        keys: Keys::All,
        arguments: &[Argument::new("key", ArgumentType::Key).multiple()],
        ..Command::new(
            "watch",
            "Not supported: a check is atomic, and there are no values to watch.",
            "transactions",
            watch,
        )
    },
    Command::new("unwatch", "Does nothing: nothing is watched.", "transactions", |context| {
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
    for (command, args) in &transaction.commands {
        let mut context = CommandContext {
            session: &mut *context.session,
            batch: &mut *context.batch,
            out: &mut *context.out,
            args: args.as_args(),
            command,
        };
        context.execute();
        if context.out.is_too_long() {
            break;
        }
    }
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
