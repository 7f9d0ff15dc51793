//! `POST /v1/unblock`: lift a block.

use tollgate::Verb;

use super::{Answers, Field, Scope, Spoken};

pub(super) const UNBLOCK: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "unblock",
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
        |_| Ok(Verb::Unblock),
    )
};
