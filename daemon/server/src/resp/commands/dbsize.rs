//! `DBSIZE`: how many keys there are in memory.

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Command, Flag};

pub(super) const COMMAND: Command = Command {
    flags: &[Flag::ReadOnly],
    scopes: &[Scope::Read],
    ..Command::new("dbsize", "Answers how many keys there are in memory.", "server", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    let Some(memory) = asking.scene.memory else {
        return Err(Failure::bad("the keys are on the store; ask it with DBSIZE"));
    };
    asking.out.size(memory.usage().keys);
    Ok(())
}
