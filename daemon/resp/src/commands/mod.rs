//! The table of commands, and the commands that are not operations, by topic.

mod connection;
mod introspection;
mod keys;
mod server;
mod throttle;
mod transaction;

use std::sync::LazyLock;

use tollgate_engine::OPERATIONS;

use super::command::Command;
use super::operation;
use tollgate_document::did_you_mean;

/// Every command, the most frequent first.
pub(super) fn commands() -> &'static [Command] {
    static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
        [throttle::CL_THROTTLE]
            .into_iter()
            .chain(OPERATIONS.iter().map(operation::command))
            .chain(keys::COMMANDS)
            .chain(transaction::COMMANDS)
            .chain(connection::COMMANDS)
            .chain(server::COMMANDS)
            .chain([introspection::COMMAND])
            .collect()
    });
    &COMMANDS
}

/// The command with a name in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Command> {
    commands().iter().find(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

/// `did you mean …?` for an unknown command.
pub(super) fn suggest(name: &[u8]) -> Option<String> {
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    did_you_mean(&name, commands().iter().map(|command| command.name))
}
