//! `TOLLGATE.RESET`: forget a key, its blocks aside.

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
        Word::Tier.argument(),
        Word::Note.argument(),
        Word::Id.argument(),
    ],
    scopes: &[Scope::Operate],
    ..Command::new("tollgate.reset", "Forgets a key, its blocks aside.", "tollgate", answer)
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Tier, Word::Note, Word::Id],
    takes_several: false,
    reply: Reply::Decision(Shape::Change),
    verb: |_| Ok(Operation::Reset),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
