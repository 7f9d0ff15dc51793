//! `POST /v1/take`: grant the lesser of the cost and what remains.

use tollgate::Operation;

use super::{Answers, Field, Spoken};

pub(super) const TAKE: Spoken = Spoken::new(
    "take",
    "Grant the lesser of the cost and what remains.",
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
    Answers::Verdict,
    |_| Ok(Operation::Take),
);
