//! The parameters of requests.

/// A parameter of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// The name of a policy.
    Policy,
    /// A tier of the policy.
    Tier,
    /// Limits in place of a policy.
    Limit,
    /// The key, as text.
    Key,
    /// The key, as bytes in base64.
    KeyBase64,
    /// The cost that is charged or refunded.
    Cost,
    /// A comment, which changes nothing.
    Note,
    /// The idempotency key of the request.
    RequestId,
    /// Several checks.
    Checks,
    /// The longest acceptable delay of a reservation.
    MaxWait,
    /// The duration of a block.
    For,
    /// The time of the decision that a refund undoes.
    Time,
    /// A lease.
    LeaseId,
    /// A reservation.
    ReservationId,
}

impl Parameter {
    /// Every parameter.
    pub const ALL: [Parameter; 14] = [
        Parameter::Policy,
        Parameter::Tier,
        Parameter::Limit,
        Parameter::Key,
        Parameter::KeyBase64,
        Parameter::Cost,
        Parameter::Note,
        Parameter::RequestId,
        Parameter::Checks,
        Parameter::MaxWait,
        Parameter::For,
        Parameter::Time,
        Parameter::LeaseId,
        Parameter::ReservationId,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Parameter::Policy => "policy",
            Parameter::Tier => "tier",
            Parameter::Limit => "limit",
            Parameter::Key => "key",
            Parameter::KeyBase64 => "key_base64",
            Parameter::Cost => "cost",
            Parameter::Note => "note",
            Parameter::RequestId => "request_id",
            Parameter::Checks => "checks",
            Parameter::MaxWait => "max_wait",
            Parameter::For => "for",
            Parameter::Time => "time",
            Parameter::LeaseId => "lease_id",
            Parameter::ReservationId => "reservation_id",
        }
    }

    /// The parameter of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Parameter::ALL.into_iter().find(|parameter| parameter.name() == name)
    }
}
