//! `POST /v1/reset`: forget a key, its blocks aside.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const RESET: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "reset",
        "Forget a key, its blocks aside.",
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
        |_| Ok(Operation::Reset),
    )
};
