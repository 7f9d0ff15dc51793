//! `POST /v1/check`: decide and charge; on a policy with a concurrent limit, acquire.

use tollgate::Operation;

use super::{Answers, Field, Spoken, id};

pub(super) const CHECK: Spoken = Spoken::new(
    "check",
    "Decide and charge; on a policy with a concurrent limit, acquire.",
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
    |object| Ok(Operation::Check { lease: id(object, Field::LeaseId)? }),
);
