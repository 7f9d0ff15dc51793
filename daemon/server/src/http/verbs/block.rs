//! `POST /v1/block`: deny every check of a key, for a time or until it is unblocked.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const BLOCK: Spoken = Spoken {
    scopes: &[Scope::Operate],
    ..Spoken::new(
        "block",
        "Deny every check of a key, for a time or until it is unblocked.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Note,
            Field::RequestId,
            Field::For,
        ],
        Answers::Change,
        |object| {
            let span =
                object.take(Field::For).map(|object| object.duration(Field::For)).transpose()?;
            Ok(Operation::Block { span })
        },
    )
};
