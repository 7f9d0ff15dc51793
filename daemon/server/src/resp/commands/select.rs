//! `SELECT`: there is one database, 0.

use crate::resp::asking::Asking;
use crate::resp::failure::{Failure, shown};
use crate::resp::table::{Argument, Command, Type};

pub(super) const COMMAND: Command = Command {
    arity: 2,
    arguments: &[Argument::new("index", Type::Integer)],
    ..Command::new("select", "Chooses a database, of which there is 0 only.", "connection", answer)
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if asking.arg(1) != b"0" {
        let index = shown(asking.arg(1));
        return Err(Failure::bad(format!("DB index is out of range: {index}; there is 0 only")));
    }
    asking.out.ok();
    Ok(())
}
