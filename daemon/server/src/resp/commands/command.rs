//! `COMMAND`: what commands there are, for clients that ask before they send.

use super::COMMANDS;
use crate::resp::asking::Asking;
use crate::resp::failure::{Failure, shown};
use crate::resp::frames::Args;
use crate::resp::out::Out;
use crate::resp::table::{Argument, Command, Flag, Keys, Type, find, near};

pub(super) const COMMAND: Command = Command {
    arity: -1,
    arguments: &[
        Argument::new("subcommand", Type::Text).optional(),
        Argument::new("argument", Type::Text).optional().multiple(),
    ],
    ..Command::new(
        "command",
        "Tells the commands there are; COUNT how many, INFO and DOCS what they take, LIST their \
         names, GETKEYS the keys of one.",
        "server",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let Some(word) = asking.args.get(1) else {
        asking.out.array(COMMANDS.len());
        COMMANDS.iter().for_each(|command| write_info(asking.out, command));
        return Ok(());
    };
    match &*word.to_ascii_lowercase() {
        b"count" if asking.args.len() == 2 => asking.out.size(COMMANDS.len()),
        b"info" => info(asking),
        b"docs" => docs(asking),
        b"list" => list(asking)?,
        b"getkeys" if asking.args.len() > 2 => keys(asking)?,
        b"count" | b"getkeys" => return Err(asking.wrong_number()),
        _ => {
            let shown = shown(word);
            let known = "there are COUNT, INFO, DOCS, LIST and GETKEYS";
            return Err(Failure::bad(format!("unknown subcommand {shown}; {known}")));
        }
    }
    Ok(())
}

fn info(asking: &mut Asking<'_, '_>) {
    if asking.args.len() == 2 {
        asking.out.array(COMMANDS.len());
        return COMMANDS.iter().for_each(|command| write_info(asking.out, command));
    }
    asking.out.array(asking.args.len() - 2);
    for name in asking.args.from(2) {
        match find(name) {
            Some(value) => write_info(asking.out, value),
            None => asking.out.null_array(),
        }
    }
}

/// The ten things that Redis tells of a command.
fn write_info(out: &mut Out, command: &Command) {
    out.array(10);
    out.text(command.name);
    out.integer(command.arity);
    let flags = command.flags.iter().filter_map(|flag| flag.word());
    out.set(flags.clone().count());
    flags.for_each(|flag| out.simple(flag));
    let (first, last, step) = places(command.keys);
    [first, last, step].into_iter().for_each(|x| out.integer(x));
    let categories: &[&str] = if command.is(Flag::Fast) { &["@fast"] } else { &["@slow"] };
    out.set(categories.len() + 1);
    categories.iter().for_each(|category| out.simple(category));
    out.simple(&format!("@{}", command.group));
    // Neither tips, nor specifications of keys, nor subcommands of their own.
    (0..3).for_each(|_| out.array(0));
}

/// The first key, the last, and the step between them.
fn places(keys: Keys) -> (i64, i64, i64) {
    match keys {
        Keys::None => (0, 0, 0),
        Keys::First => (1, 1, 1),
        Keys::All => (1, -1, 1),
        Keys::OfChecks => (2, 2, 1),
    }
}

fn docs(asking: &mut Asking<'_, '_>) {
    let named: Vec<&Command> = asking.args.from(2).filter_map(find).collect();
    let all = COMMANDS.iter().filter(|_| asking.args.len() == 2);
    let told: Vec<_> = all.chain(named).collect();
    asking.out.map(told.len());
    for command in told {
        let out = &mut *asking.out;
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

fn write_argument(out: &mut Out, argument: &Argument) {
    let has_token = !argument.token.is_empty();
    let flags = [(argument.is_optional, "optional"), (argument.is_multiple, "multiple")];
    let flags: Vec<_> = flags.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
    out.map(2 + usize::from(has_token) + usize::from(!flags.is_empty()));
    out.text("name");
    out.text(argument.name);
    out.text("type");
    out.text(argument.kind.word());
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

fn list(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if asking.args.len() > 2 {
        return Err(Failure::bad("COMMAND LIST has no filters here; it names all there are"));
    }
    asking.out.array(COMMANDS.len());
    COMMANDS.iter().for_each(|command| asking.out.text(command.name));
    Ok(())
}

fn keys(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let name = asking.arg(2);
    let Some(command) = find(name) else {
        let hint = near(name).unwrap_or_else(|| "COMMAND LIST names those there are".to_owned());
        return Err(Failure::bad(format!("Invalid command specified: {}; {hint}", shown(name))));
    };
    if !command.takes(asking.args.len() - 2) {
        return Err(Failure::bad("Invalid number of arguments specified for command"));
    }
    let keys = keys_of(command, asking.args);
    if keys.is_empty() {
        return Err(Failure::bad("The command has no key arguments"));
    }
    asking.out.array(keys.len());
    keys.iter().for_each(|key| asking.out.bulk(key));
    Ok(())
}

/// The keys of a command that stands after two words.
fn keys_of<'a>(command: &Command, args: Args<'a>) -> Vec<&'a [u8]> {
    match command.keys {
        Keys::None => Vec::new(),
        Keys::First => args.get(3).into_iter().collect(),
        Keys::All => args.from(3).collect(),
        Keys::OfChecks => {
            let mut keys = Vec::new();
            let mut at = 3;
            while let Some(policy) = args.get(at) {
                let key = at + 1 + usize::from(policy.eq_ignore_ascii_case(b"LIMIT"));
                keys.extend(args.get(key));
                at = key + 1;
                // Words with a value each, up to the next check.
                while args.get(at).is_some_and(|arg| !arg.eq_ignore_ascii_case(b"AND")) {
                    at += 2;
                }
                at += 1;
            }
            keys
        }
    }
}
