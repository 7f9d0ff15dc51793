//! `TOLLGATE.REFUND`: give a cost back.

use tollgate::{Operation, Timestamp};

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
        Word::Time.argument(),
    ],
    scopes: &[Scope::Operate],
    ..Command::new(
        "tollgate.refund",
        "Gives a cost back; with TIME, that of its decision, in the window of that time.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Cost, Word::Tier, Word::Note, Word::Id, Word::Time],
    takes_several: false,
    reply: Reply::Decision(Shape::Change),
    verb: |own| {
        Ok(Operation::Refund { time: own.time.map(|time| Timestamp::from_micros(time.get())) })
    },
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
