//! `POST /v1/reserve`: charge now, act after the delay; refused whole if that is longer than max_wait.

use tollgate::{Micros, Operation};

use super::{Answers, Field, Spoken, id_or_drawn};

pub(super) const RESERVE: Spoken = Spoken::new(
    "reserve",
    "Charge now, act after the delay; refused whole if that is longer than max_wait.",
    &[
        Field::Policy,
        Field::Tier,
        Field::Limit,
        Field::Key,
        Field::KeyBase64,
        Field::Cost,
        Field::Note,
        Field::RequestId,
        Field::MaxWait,
        Field::ReservationId,
    ],
    Answers::Verdict,
    |object| {
        let id = id_or_drawn(object, Field::ReservationId)?;
        let max_wait = object.take(Field::MaxWait).map(|object| object.duration(Field::MaxWait));
        // Without a longest wait, any will do.
        let max_wait = max_wait.transpose()?.unwrap_or(Micros::new(u64::MAX));
        Ok(Operation::Reserve { id, max_wait })
    },
);
