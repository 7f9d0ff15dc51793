//! The names of what a request may say.

/// A field of a request: of a JSON body, or of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Policy,
    Tier,
    Limit,
    Key,
    KeyBase64,
    Cost,
    Note,
    Checks,
    RequestId,
    MaxWait,
    For,
    LeaseId,
    ReservationId,
    Time,
    /// Which statuses the answer may have: of queries only.
    Status,
}

use Field::*;

const NAMES: [(Field, &str); 15] = [
    (Policy, "policy"),
    (Tier, "tier"),
    (Limit, "limit"),
    (Key, "key"),
    (KeyBase64, "key_base64"),
    (Cost, "cost"),
    (Note, "note"),
    (Checks, "checks"),
    (RequestId, "request_id"),
    (MaxWait, "max_wait"),
    (For, "for"),
    (LeaseId, "lease_id"),
    (ReservationId, "reservation_id"),
    (Time, "time"),
    (Status, "status"),
];

impl Field {
    pub(super) fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(field, _)| *field)
    }

    pub(super) fn of_name(name: &str) -> Option<Self> {
        NAMES.iter().find(|(_, x)| *x == name).map(|(field, _)| *field)
    }

    pub(super) fn name(self) -> &'static str {
        NAMES.iter().find(|(field, _)| *field == self).map_or("", |(_, name)| name)
    }
}
