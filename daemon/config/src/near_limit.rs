//! The fraction of a limit from which envoyproxy/ratelimit counts hits as near the limit.

/// The fraction of a limit from which hits count as near it; 0.8 by default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearLimit(f32);

impl NearLimit {
    /// A fraction such as 0.8.
    #[must_use]
    pub const fn from_ratio(ratio: f32) -> Self {
        NearLimit(ratio)
    }

    /// The number of hits from which on they are near `limit`, rounded as envoyproxy/ratelimit does.
    #[must_use]
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::float_arithmetic,
        reason = "a statistic that is rounded as envoyproxy/ratelimit rounds it; the cast \
                  saturates, and no decision depends on it"
    )]
    pub fn threshold(self, limit: u64) -> u64 {
        (limit as f32 * self.0).floor() as u64
    }
}

impl Default for NearLimit {
    fn default() -> Self {
        NearLimit(0.8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threshold_is_rounded_as_the_reference_rounds_it() {
        for (ratio, limit, near) in [
            (0.8, 10, 8),
            (0.8, 15, 12),
            (0.8, 8, 6),
            (0.8, 1, 0),
            (0.8, 0, 0),
            (0.8, 4_294_967_295, 3_435_973_888),
            (0.5, 5, 2),
            (1.0, 7, 7),
        ] {
            assert_eq!(NearLimit::from_ratio(ratio).threshold(limit), near, "{ratio} of {limit}");
        }
    }
}
