//! How many hits of a descriptor are over its limit, near it or within it.

/// What was used before the hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Before {
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
    use tollgate_config::NearLimit;

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
            let near_limit = NearLimit::default().threshold(limit);
            let split = Split::of(limit, near_limit, Before::Used(before), hits);
            assert_eq!(split, Split { over, near, within }, "{limit} {before} {hits}");
        }
    }
}
