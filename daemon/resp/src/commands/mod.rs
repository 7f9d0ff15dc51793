//! The commands that are not operations, by topic, and the table of all commands.

mod connection;
mod introspection;
mod keys;
mod server;
mod throttle;
mod transaction;

use std::sync::LazyLock;

use tollgate_engine::OPERATIONS;

use super::command::Command;

/// Every command, the most frequent first.
pub(super) fn commands() -> &'static [Command] {
    static COMMANDS: LazyLock<Vec<Command>> = LazyLock::new(|| {
        [throttle::CL_THROTTLE]
            .into_iter()
            .chain(OPERATIONS.iter().map(Command::from_operation))
            .chain(keys::COMMANDS)
            .chain(transaction::COMMANDS)
            .chain(connection::COMMANDS)
            .chain(server::COMMANDS)
            .chain([introspection::COMMAND])
            .collect()
    });
    &COMMANDS
}
