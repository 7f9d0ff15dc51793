//! `POST /v1/release`: give a lease's place back, once.

use tollgate::Operation;

use super::{Answers, Field, Spoken, needed_id};

pub(super) const RELEASE: Spoken = Spoken {
    needs: &[Field::LeaseId],
    ..Spoken::new(
        "release",
        "Give a lease's place back, once.",
        &[
            Field::Policy,
            Field::Tier,
            Field::Limit,
            Field::Key,
            Field::KeyBase64,
            Field::Note,
            Field::RequestId,
            Field::LeaseId,
        ],
        Answers::Change,
        |object| Ok(Operation::Release { lease: needed_id(object, Field::LeaseId)? }),
    )
};
