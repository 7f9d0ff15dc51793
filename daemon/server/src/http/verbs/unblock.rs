//! `POST /v1/unblock`: lift a block.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const UNBLOCK: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "unblock",
        "Lift a block.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Note,
            Field::RequestId,
        ],
        Answers::Change,
        |_| Ok(Operation::Unblock),
    )
};
