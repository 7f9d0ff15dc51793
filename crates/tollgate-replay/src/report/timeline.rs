//! Costs over time, in bins that widen as the time grows.

use tollgate::{Micros, Timestamp};

/// Costs over time, in bins of one width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// When the first bin begins: a multiple of the width since the Unix epoch.
    pub start: Timestamp,
    /// How long a bin is; a second is a multiple of it, or it of a second.
    pub width: Micros,
    /// The cost in each bin.
    pub costs: Vec<u64>,
}
