//! Request ids of requests and of their parts.

use tollgate_algorithms::Id;

/// The request id of a request or of a part of one.
#[derive(Clone, Debug)]
pub(crate) struct RequestId {
    pub(crate) id: Box<[u8]>,
    /// The fingerprint of the whole request.
    pub(crate) fingerprint: u128,
    pub(crate) role: Role,
    pub(crate) scope: RecordScope,
    /// The number of the attempt, if the request has keys in several partitions.
    pub(crate) attempt: u64,
    /// The fingerprint of the checks without their costs, for a check and for its settlement; 0 for
    /// other operations.
    pub(crate) target: u128,
    /// For a settlement, the fingerprint of the check. The record of a whole request does not need it.
    pub(crate) charge: Option<u128>,
}

/// What the record of a request id represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordScope {
    /// The whole request.
    Request,
    /// The checks that decide, in one partition.
    Part,
    /// The checks of shadow policies in one partition.
    Shadows,
}

/// What a request does with its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Executes the request, unless it is a repeat.
    Whole,
    /// Claims the id for a new attempt, unless the request is a repeat.
    Claim,
    /// Charges a part for an attempt, unless an earlier attempt did.
    Part,
    /// Charges the part that decides, if the attempt is the last.
    Commit,
    /// Takes back a part and its lease, if no later attempt has taken it over.
    Undo { lease: Option<Id> },
    /// Returns the first answer, if the request is a repeat, or else executes it without a record.
    Recall,
    /// Returns the first answer, if the request is a repeat, and does not read its keys. For a
    /// settlement, returns the fingerprint of the check, if its charge can be settled.
    LookUp,
    /// Deletes the record of a part, if no later attempt has taken it over. What the part was charged
    /// remains.
    Forget,
}

impl Role {
    /// Returns the number of the role in `lua/request_ids.lua`.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Role::Whole => 0,
            Role::Claim => 1,
            Role::Part => 2,
            Role::Commit => 3,
            Role::Undo { .. } | Role::Forget => 4,
            Role::Recall => 5,
            Role::LookUp => 6,
        }
    }
}
