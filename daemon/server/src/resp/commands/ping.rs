//! `PING`: whether anybody is there.

use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::table::{Argument, Command, Type};

pub(super) const COMMAND: Command = Command {
    arity: -1,
    arguments: &[Argument::new("message", Type::Text).optional()],
    ..Command::new("ping", "Answers PONG, or what it was given.", "connection", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    match (asking.args.len(), asking.args.get(1)) {
        (1, _) => asking.out.simple("PONG"),
        (2, Some(message)) => asking.out.bulk(message),
        _ => return Err(asking.wrong_number()),
    }
    Ok(())
}
