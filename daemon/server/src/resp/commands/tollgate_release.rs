//! `TOLLGATE.RELEASE`: give a lease's place back.

use tollgate::Operation;

use crate::config::Scope;
use crate::resp::asking::Asking;
use crate::resp::decision::Shape;
use crate::resp::failure::Failure;
use crate::resp::given::Own;
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
        Argument { is_optional: false, ..Word::Lease.argument() },
    ],
    scopes: &[Scope::Check],
    ..Command::new("tollgate.release", "Gives a lease's place back, once.", "tollgate", answer)
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Tier, Word::Note, Word::Id, Word::Lease],
    takes_several: false,
    reply: Reply::Decision(Shape::Change),
    verb: |own| Ok(Operation::Release { lease: Own::needed(own.lease, Word::Lease)? }),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
