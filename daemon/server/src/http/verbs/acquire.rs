//! `POST /v1/acquire`: take a lease on every concurrent limit of a policy.

use tollgate::Operation;

use super::{Answers, Field, Spoken, id_or_drawn};

pub(super) const ACQUIRE: Spoken = Spoken::new(
    "acquire",
    "Take a lease on every concurrent limit of a policy.",
    &[
        Field::Policy,
        Field::Tier,
        Field::Limit,
        Field::Key,
        Field::KeyBase64,
        Field::Cost,
        Field::Note,
        Field::RequestId,
        Field::Checks,
        Field::LeaseId,
    ],
    Answers::Verdict,
    |object| Ok(Operation::Acquire { lease: id_or_drawn(object, Field::LeaseId)? }),
);
