//! `POST /v1/cancel`: give a reservation back, once, before its time.

use tollgate::Operation;

use super::{Answers, Field, Spoken, needed_id};

pub(super) const CANCEL: Spoken = Spoken {
    needs: &[Field::ReservationId],
    ..Spoken::new(
        "cancel",
        "Give a reservation back, once, before its time.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Note,
            Field::RequestId,
            Field::ReservationId,
        ],
        Answers::Change,
        |object| Ok(Operation::Cancel { id: needed_id(object, Field::ReservationId)? }),
    )
};
