//! `TOLLGATE.PEEK`: what a check would answer; nothing changes.

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
    flags: &[Flag::ReadOnly, Flag::Fast, Flag::MovableKeys],
    keys: Keys::OfChecks,
    arguments: &[
        Argument::new("policy", Type::Text),
        Argument::new("key", Type::Key),
        Word::Cost.argument(),
        Word::Tier.argument(),
        Word::Note.argument(),
        Argument::new("policy key …", Type::Text).after("AND").optional().multiple(),
    ],
    scopes: &[Scope::Check, Scope::Read],
    ..Command::new(
        "tollgate.peek",
        "Answers what a check would; nothing changes.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Cost, Word::Tier, Word::Note],
    takes_several: true,
    reply: Reply::Decision(Shape::Decision),
    verb: |_| Ok(Operation::Peek),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
