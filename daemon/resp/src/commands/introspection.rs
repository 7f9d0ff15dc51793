//! `COMMAND`: the table of commands, for clients that read it before they send.

use super::{commands, find, suggest};
use crate::command::{Argument, Command, Flag, Keys};
use crate::context::CommandContext;
use crate::failure::{Failure, quoted};
use crate::frames::Args;
use crate::operation::is_selector;
use crate::reply_buffer::ReplyBuffer;

pub(super) const COMMAND: Command = Command::new(
    "command",
    "Returns all commands; COUNT their number, INFO and DOCS their arguments, LIST their names, \
     GETKEYS the keys of one.",
    "server",
    execute,
)
.with_arguments(&[
    Argument::text("subcommand").optional(),
    Argument::text("argument").optional().multiple(),
]);

fn execute(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let Some(word) = context.args.get(1) else {
        context.out.array(commands().len());
        commands().iter().for_each(|command| write_info(context.out, command));
        return Ok(());
    };
    match &*word.to_ascii_lowercase() {
        b"count" if context.args.len() == 2 => context.out.size(commands().len()),
        b"info" => info(context),
        b"docs" => docs(context),
        b"list" => list(context)?,
        b"getkeys" if context.args.len() > 2 => keys(context)?,
        b"count" | b"getkeys" => return Err(context.wrong_arity()),
        _ => {
            let shown = quoted(word);
            let expected = "expected COUNT, INFO, DOCS, LIST or GETKEYS";
            return Err(Failure::bad(format!("unknown subcommand {shown}; {expected}")));
        }
    }
    Ok(())
}

fn info(context: &mut CommandContext<'_, '_>) {
    if context.args.len() == 2 {
        context.out.array(commands().len());
        return commands().iter().for_each(|command| write_info(context.out, command));
    }
    context.out.array(context.args.len() - 2);
    for name in context.args.from(2) {
        match find(name) {
            Some(value) => write_info(context.out, value),
            None => context.out.null_array(),
        }
    }
}

/// The ten properties of a command in Redis.
fn write_info(out: &mut ReplyBuffer, command: &Command) {
    out.array(10);
    out.text(command.name);
    out.integer(command.arity);
    let flags = command.flags.iter().filter_map(|flag| flag.name());
    out.set(flags.clone().count());
    flags.for_each(|flag| out.simple(flag));
    let (first, last, step) = key_positions(command.keys);
    [first, last, step].into_iter().for_each(|position| out.integer(position));
    let categories: &[&str] = if command.has(Flag::Fast) { &["@fast"] } else { &["@slow"] };
    out.set(categories.len() + 1);
    categories.iter().for_each(|category| out.simple(category));
    out.simple(&format!("@{}", command.group));
    // No tips, no key specifications, no subcommands.
    (0..3).for_each(|_| out.array(0));
}

/// The position of the first and the last key, and the step between keys.
fn key_positions(keys: Keys) -> (i64, i64, i64) {
    match keys {
        Keys::None => (0, 0, 0),
        Keys::First => (1, 1, 1),
        Keys::All => (1, -1, 1),
        Keys::OfChecks => (2, 2, 1),
    }
}

fn docs(context: &mut CommandContext<'_, '_>) {
    let named: Vec<&Command> = context.args.from(2).filter_map(find).collect();
    let all = commands().iter().filter(|_| context.args.len() == 2);
    let documented: Vec<_> = all.chain(named).collect();
    context.out.map(documented.len());
    for command in documented {
        let out = &mut *context.out;
        out.text(command.name);
        out.map(4);
        for (name, value) in
            [("summary", command.summary), ("since", command.since), ("group", command.group)]
        {
            out.text(name);
            out.text(value);
        }
        out.text("arguments");
        out.array(command.arguments.len());
        command.arguments.iter().for_each(|argument| write_argument(out, argument));
    }
}

fn write_argument(out: &mut ReplyBuffer, argument: &Argument) {
    let has_token = !argument.token.is_empty();
    let flags = [(argument.is_optional, "optional"), (argument.is_multiple, "multiple")];
    let flags: Vec<_> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
    out.map(2 + usize::from(has_token) + usize::from(!flags.is_empty()));
    out.text("name");
    out.text(argument.name);
    out.text("type");
    out.text(argument.kind.name());
    if has_token {
        out.text("token");
        out.text(argument.token);
    }
    if !flags.is_empty() {
        out.text("flags");
        out.set(flags.len());
        flags.iter().for_each(|flag| out.simple(flag));
    }
}

fn list(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    if context.args.len() > 2 {
        return Err(Failure::bad("COMMAND LIST supports no filters"));
    }
    context.out.array(commands().len());
    commands().iter().for_each(|command| context.out.text(command.name));
    Ok(())
}

fn keys(context: &mut CommandContext<'_, '_>) -> Result<(), Failure> {
    let name = context.arg(2);
    let Some(command) = find(name) else {
        let hint = suggest(name).unwrap_or_else(|| "COMMAND LIST returns all names".to_owned());
        return Err(Failure::bad(format!("Invalid command specified: {}; {hint}", quoted(name))));
    };
    if !command.accepts(context.args.len() - 2) {
        return Err(Failure::bad("Invalid number of arguments specified for command"));
    }
    let keys = key_arguments(command, context.args);
    if keys.is_empty() {
        return Err(Failure::bad("The command has no key arguments"));
    }
    context.out.array(keys.len());
    keys.iter().for_each(|key| context.out.bulk(key));
    Ok(())
}

/// The keys of a command that follows `COMMAND GETKEYS`.
fn key_arguments<'a>(command: &Command, args: Args<'a>) -> Vec<&'a [u8]> {
    match command.keys {
        Keys::None => Vec::new(),
        Keys::First => args.get(3).into_iter().collect(),
        Keys::All => args.from(3).collect(),
        Keys::OfChecks => {
            let mut keys = Vec::new();
            let mut at = 3;
            while let Some(policy) = args.get(at) {
                let key = at + 1 + usize::from(is_selector(policy));
                keys.extend(args.get(key));
                at = key + 1;
                // Skip keywords and their values, up to the next check.
                while args.get(at).is_some_and(|arg| !arg.eq_ignore_ascii_case(b"AND")) {
                    at += 2;
                }
                at += 1;
            }
            keys
        }
    }
}
