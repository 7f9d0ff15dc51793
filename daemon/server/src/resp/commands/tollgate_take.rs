//! `TOLLGATE.TAKE`: grant the lesser of the cost and what remains.

use tollgate::Operation;

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::decision::Shape;
use crate::resp::failure::Failure;
use crate::resp::question::Reply;
use crate::resp::table::{Argument, Command, Flag, Keys, Type};
use crate::resp::verb::{self, Spoken};
use crate::resp::word::Word;

pub(super) const COMMAND: Command = Command {
    arity: -3,
    flags: &[Flag::Write, Flag::Fast, Flag::MovableKeys],
    keys: Keys::OfChecks,
    arguments: &[
        Argument::new("policy", Type::Text),
        Argument::new("key", Type::Key),
        Word::Cost.argument(),
        Word::Tier.argument(),
        Word::Note.argument(),
        Word::Id.argument(),
    ],
    scopes: &[Scope::Check],
    ..Command::new(
        "tollgate.take",
        "Grants the lesser of the cost and what remains.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Cost, Word::Tier, Word::Note, Word::Id],
    takes_several: false,
    reply: Reply::Decision(Shape::Decision),
    verb: |_| Ok(Operation::Take),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
