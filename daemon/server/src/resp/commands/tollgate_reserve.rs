//! `TOLLGATE.RESERVE`: charge now, act after the delay.

use tollgate::{Micros, Operation, random_id};

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
        Word::MaxWait.argument(),
        Word::Reservation.argument(),
    ],
    scopes: &[Scope::Check],
    ..Command::new(
        "tollgate.reserve",
        "Charges now what may act after the delay; refused whole if that is longer than MAXWAIT.",
        "tollgate",
        answer,
    )
};

static SPOKEN: Spoken = Spoken {
    words: &[Word::Cost, Word::Tier, Word::Note, Word::Id, Word::MaxWait, Word::Reservation],
    takes_several: false,
    reply: Reply::Decision(Shape::Decision),
    verb: |own| {
        let id = own.reservation.unwrap_or_else(random_id);
        // Without a longest wait, any will do.
        let max_wait = own.max_wait.unwrap_or(Micros::new(u64::MAX));
        Ok(Operation::Reserve { id, max_wait })
    },
};

fn answer(asking: &mut Asking<'_, '_>) -> Result<(), Failure> {
    verb::answer(asking, &SPOKEN)
}
