//! `CONFIG`: nothing of the daemon is configured so; clients look some things up nevertheless.

use crate::resp::asking::Asking;
use crate::resp::failure::{Failure, shown};
use crate::resp::table::{Argument, Command, Type};

pub(super) const COMMAND: Command = Command {
    arity: -2,
    arguments: &[
        Argument::new("get", Type::Word).after("GET"),
        Argument::new("parameter", Type::Text).multiple(),
    ],
    ..Command::new(
        "config",
        "CONFIG GET answers nothing: the daemon's configuration is its file.",
        "server",
        answer,
    )
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    if !asking.arg(1).eq_ignore_ascii_case(b"get") {
        let detail = "the daemon is configured by its file, which is read again when it changes";
        return Err(Failure::bad(format!("no CONFIG {} here; {detail}", shown(asking.arg(1)))));
    }
    if asking.args.len() < 3 {
        return Err(asking.wrong_number());
    }
    asking.out.map(0);
    Ok(())
}
