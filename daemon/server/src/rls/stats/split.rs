//! How many hits of a descriptor are over its limit, near it or within it.

/// From which part of a limit on hits are near it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearLimit(f32);

impl NearLimit {
    /// From this part on, such as 0.8.
    #[must_use]
    pub const fn from_ratio(ratio: f32) -> Self {
        NearLimit(ratio)
    }

    /// The number of hits of a limit from which on they are near it, rounded as the reference does.
    #[allow(
        clippy::as_conversions,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        clippy::float_arithmetic,
        reason = "a statistic that must be rounded as the reference's; it saturates, and decides nothing"
    )]
    pub(super) fn of(self, limit: u64) -> u64 {
        (limit as f32 * self.0).floor() as u64
    }
}

impl Default for NearLimit {
    fn default() -> Self {
        NearLimit(0.8)
    }
}

/// What was used before the hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rls) enum Before {
    /// So much; of a limit that was reached at least that limit.
    Used(u64),
    /// It does not matter: none of the hits pass.
    Over,
}

/// How many hits are what; those over a limit and those within it are all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) over: u64,
    pub(super) near: u64,
    pub(super) within: u64,
}

impl Split {
    /// Of hits on a limit of which hits are near from `near` on. Those which one cannot pass
    /// without the others count by themselves: some of them are over, the others were near.
    pub(super) fn of(limit: u64, near: u64, before: Before, hits: u64) -> Self {
        let before = match before {
            Before::Used(before) if before < limit => before,
            Before::Used(after) if after == limit && hits == 0 => return Split::default(),
            Before::Used(_) | Before::Over => return Split { over: hits, ..Split::default() },
        };
        let after = before.saturating_add(hits);
        if after > limit {
            let near = limit.saturating_sub(near.max(before));
            Split { over: after - limit, near, within: 0 }
        } else {
            Split { over: 0, near: after.saturating_sub(near.max(before)), within: hits }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_split_as_the_reference_splits_them() {
        // The limit, how much was used, the hits; how many are over, near and within.
        for (limit, before, hits, over, near, within) in [
            (10, 4, 1, 0, 0, 1),
            (10, 10, 1, 1, 0, 0),
            (10, 11, 0, 0, 0, 0),
            (15, 10, 1, 0, 0, 1),
            (15, 12, 1, 0, 1, 1),
            (15, 15, 1, 1, 0, 0),
            (20, 2, 3, 0, 0, 3),
            (8, 5, 2, 0, 1, 2),
            (20, 16, 3, 0, 3, 3),
            (20, 19, 3, 2, 1, 0),
            (20, 15, 7, 2, 4, 0),
            (10, 27, 3, 3, 0, 0),
            (0, 0, 1, 1, 0, 0),
            (10, 10, 0, 0, 0, 0),
        ] {
            let near_limit = NearLimit::default().of(limit);
            let split = Split::of(limit, near_limit, Before::Used(before), hits);
            assert_eq!(split, Split { over, near, within }, "{limit} {before} {hits}");
        }
    }

    #[test]
    fn the_part_is_rounded_as_the_reference_rounds_it() {
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
            assert_eq!(NearLimit::from_ratio(ratio).of(limit), near, "{ratio} of {limit}");
        }
    }
}
