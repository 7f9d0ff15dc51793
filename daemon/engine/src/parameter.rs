//! The parameters of requests.

named_enum! {
    /// A parameter of a request.
    pub Parameter,
    /// Its name.
    fn name;
    /// The name of a policy.
    Policy = "policy",
    /// A tier of the policy.
    Tier = "tier",
    /// Limits in place of a policy; in a query of keys, the most keys of a page.
    Limit = "limit",
    /// A domain of Envoy's rate limit service, in place of a policy.
    Domain = "domain",
    /// A descriptor of that domain, in place of a key.
    Descriptor = "descriptor",
    /// The key, as text.
    Key = "key",
    /// The key, as bytes in base64.
    KeyBase64 = "key_base64",
    /// The cost that is charged or refunded.
    Cost = "cost",
    /// A comment, which decides nothing, and which a policy with `track` records.
    Note = "note",
    /// The idempotency key of the request.
    RequestId = "request_id",
    /// Several checks.
    Checks = "checks",
    /// The longest acceptable delay of a reservation.
    MaxWait = "max_wait",
    /// The duration of a block.
    For = "for",
    /// The time of the decision that a refund undoes.
    Time = "time",
    /// A lease.
    LeaseId = "lease_id",
    /// A reservation.
    ReservationId = "reservation_id",
    /// The order of keys.
    Order = "order",
    /// What keys begin with.
    Prefix = "prefix",
    /// Where the previous page ended.
    Cursor = "cursor",
}

impl Parameter {
    /// The parameter of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Parameter::ALL.into_iter().find(|parameter| parameter.name() == name)
    }
}
