//! What cannot be an override.

use std::fmt;

use tollgate_core::{MAX_KEY_LEN, NotationError};

use super::MAX_OVERRIDES;

/// Why an override was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// The text says no keys.
    Pattern(PatternError),
    /// The text is neither limits nor `unlimited`.
    Limits(NotationError),
    /// An earlier row is of the same keys.
    Duplicate {
        /// That row, in the order in which they were added, from 0.
        first: usize,
    },
    /// There are [`MAX_OVERRIDES`] already.
    TooMany,
    /// The keys together have more than 4 GiB.
    TooLong,
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideError::Pattern(pattern) => pattern.fmt(f),
            OverrideError::Limits(limits) => write!(f, "{limits} (for no limit write unlimited)"),
            OverrideError::Duplicate { .. } => {
                f.write_str("it is there already; leave one of them out")
            }
            OverrideError::TooMany => write!(
                f,
                "more than {MAX_OVERRIDES} overrides are too many; give keys that begin alike one \
                 row, such as bot-*, or use tiers"
            ),
            OverrideError::TooLong => {
                f.write_str("the keys together have more than 4 GiB; use a hash of each as its key")
            }
        }
    }
}

impl std::error::Error for OverrideError {}

/// Why a text says no keys.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// It is empty.
    Empty,
    /// It has more bytes than a key.
    Long(usize),
    /// It is a star alone.
    Everything,
    /// A star stands before the end.
    Star,
    /// A backslash stands before something else than a star, a slash or a backslash.
    Backslash,
    /// It has an address of a network, but bits beyond its length.
    BeyondLength {
        /// The network that the address is in.
        network: Box<str>,
    },
    /// A network of more bits than its addresses have.
    Length {
        /// How many bits they have.
        most: u8,
    },
    /// It looks like a network, but its address is none.
    Address,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty => f.write_str("it is empty; write a key, such as user:42"),
            PatternError::Long(length) => {
                write!(f, "it is {length} bytes long; a key has at most {MAX_KEY_LEN}")
            }
            PatternError::Everything => f.write_str(
                "a star alone would be every key; change the limits of the policy instead",
            ),
            PatternError::Star => f.write_str(
                r"a star stands for the rest of a key, at the end only; write \* for a star itself",
            ),
            PatternError::Backslash => {
                f.write_str(r"a backslash stands before *, / or \ only; write \\ for one itself")
            }
            PatternError::BeyondLength { network } => {
                write!(f, "the address has bits beyond the length; write {network}")
            }
            PatternError::Length { most } => write!(
                f,
                r"such a network has a length of at most {most}; write \/ for the slash of a key"
            ),
            PatternError::Address => f.write_str(
                r"it looks like a network, but has no whole address before the slash; write it as 10.0.0.0/8 or 2001:db8::/32, or \/ for the slash of a key",
            ),
        }
    }
}

impl std::error::Error for PatternError {}
