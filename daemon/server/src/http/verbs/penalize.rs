//! `POST /v1/penalize`: charge whatever the level, into a debt of at most one more capacity.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const PENALIZE: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "penalize",
        "Charge whatever the level, into a debt of at most one more capacity.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Cost,
            Field::Note,
            Field::RequestId,
        ],
        Answers::Change,
        |_| Ok(Operation::Penalize),
    )
};
