//! `POST /v1/peek`, `GET /v1/peek?policy=&key=`: what a check would answer; nothing changes.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const PEEK: Spoken = Spoken {
    scopes: &[Scope::Check, Scope::Read],
    by_query: true,
    fields_of_query: &[
        Field::Policy,
        Field::Tier,
        Field::Limit,
        Field::Key,
        Field::KeyBase64,
        Field::Cost,
        Field::Status,
    ],
    ..Spoken::new(
        "peek",
        "What a check would answer; nothing changes.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Cost,
            Field::Note,
            Field::Checks,
        ],
        Answers::Decision,
        |_| Ok(Operation::Peek),
    )
};
