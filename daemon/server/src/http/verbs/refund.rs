//! `POST /v1/refund`: give a cost back.

use tollgate::{Operation, Timestamp};

use super::{Answers, Field, Scope, Spoken};

pub(super) const REFUND: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "refund",
        "Give a cost back.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Cost,
            Field::Note,
            Field::RequestId,
            Field::Time,
        ],
        Answers::Change,
        |object| {
            let time =
                object.take(Field::Time).map(|object| object.seconds(Field::Time)).transpose()?;
            Ok(Operation::Refund { time: time.map(|time| Timestamp::from_micros(time.get())) })
        },
    )
};
