//! `POST /v1/inspect`: what each limit holds of a key, its block, its leases and reservations.

use tollgate::Operation;

use super::{Answers, Field, Scope, Spoken};

pub(super) const INSPECT: Spoken = Spoken {
    scopes: &[Scope::Read],
    ..Spoken::new(
        "inspect",
        "What each limit holds of a key, its block, its leases and reservations.",
        &[Field::Policy, Field::Tier, Field::Limit, Field::Key, Field::KeyBase64, Field::Note],
        Answers::Inspection,
        // Looked at without a verb of its own.
        |_| Ok(Operation::Peek),
    )
};
