//! `ECHO`: the same again.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Argument, Command, Type};

pub(super) const COMMAND: Command = Command {
    arity: 2,
    arguments: &[Argument::new("message", Type::Text)],
    ..Command::new("echo", "Answers what it was given.", "connection", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    asking.out.bulk(asking.arg(1));
    Ok(())
}
