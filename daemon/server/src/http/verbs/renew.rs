//! `POST /v1/renew`: let a lease that is still held last its whole length from now.

use tollgate::Operation;

use super::{Answers, Field, Spoken, needed_id};

pub(super) const RENEW: Spoken = Spoken {
    needs: &[Field::LeaseId],
    ..Spoken::new(
        "renew",
        "Let a lease that is still held last its whole length from now.",
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
        |object| Ok(Operation::Renew { lease: needed_id(object, Field::LeaseId)? }),
    )
};
