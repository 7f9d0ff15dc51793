//! `TOLLGATE.ACQUIRE`: take a lease.

use tollgate::{Operation, random_id};

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
        Word::Lease.argument(),
        Argument::new("policy key …", Type::Text).after("AND").optional().multiple(),
    ],
    scopes: &[Scope::Check],
    ..Command::new(
        "tollgate.acquire",
        "Takes a lease on every concurrent limit of a policy.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Cost, Word::Tier, Word::Note, Word::Id, Word::Lease],
    takes_several: true,
    reply: Reply::Decision(Shape::Decision),
    verb: |own| Ok(Operation::Acquire { lease: own.lease.unwrap_or_else(random_id) }),
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
