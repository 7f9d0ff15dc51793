//! `TOLLGATE.INSPECT`: what is kept of a key.

use tollgate::Operation;

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::failure::Failure;
use crate::resp::question::Reply;
use crate::resp::table::{Argument, Command, Flag, Keys, Type};
use crate::resp::verb::{self, Spoken};
use crate::resp::word::Word;

pub(super) const COMMAND: Command = Command {
    arity: -3,
    flags: &[Flag::ReadOnly, Flag::Fast, Flag::MovableKeys],
    keys: Keys::OfChecks,
    arguments: &[
        Argument::new("policy", Type::Text),
        Argument::new("key", Type::Key),
        Word::Tier.argument(),
        Word::Note.argument(),
    ],
    scopes: &[Scope::Read],
    ..Command::new(
        "tollgate.inspect",
        "Answers what each limit holds of a key, its block, its leases and reservations.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Tier, Word::Note],
    takes_several: false,
    reply: Reply::Inspection,
    // Looked at without a verb of its own.
    verb: |_| Ok(Operation::Peek),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
