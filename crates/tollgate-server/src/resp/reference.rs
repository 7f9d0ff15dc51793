//! The commands, as text: how each is written, and the page of all of them.

use super::table::{Argument, Command, Type};

/// How a command is written.
pub(super) fn usage(command: &Command) -> String {
    let mut usage = command.name.to_ascii_uppercase();
    for argument in command.arguments {
        usage.push(' ');
        usage.push_str(&written(argument));
    }
    usage
}

fn written(argument: &Argument) -> String {
    let written = match (argument.kind, argument.token) {
        (Type::Word, token) => token.to_owned(),
        (_, "") => argument.name.to_owned(),
        (_, token) => format!("{token} {}", argument.name),
    };
    match (argument.is_optional, argument.is_multiple) {
        (false, false) => written,
        (true, false) => format!("[{written}]"),
        (false, true) => format!("{written} [{written} …]"),
        (true, true) => format!("[{written} …]"),
    }
}
