//! How headers tell a client its limits.

/// How headers tell a client its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderStyle {
    /// `RateLimit-Policy` and `RateLimit`, an item for each limit, as the IETF's draft 11 has them.
    Draft11,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, the last in seconds from now.
    LegacyDelta,
    /// The same, the last in seconds since the Unix epoch.
    LegacyEpoch,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` and `-Policy`, as the IETF's draft 6 has them.
    Draft6,
}
