//! Errors of overrides and their patterns.

use std::fmt;

use tollgate_core::{MAX_KEY_LEN, NotationError};

/// The maximum number of rows in one [`Overrides`](crate::Overrides).
pub const MAX_OVERRIDES: usize = 1_000_000;

/// Why an override was not added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverrideError {
    /// The pattern is invalid.
    Pattern(PatternError),
    /// The text is neither limits nor `unlimited`.
    Limits(NotationError),
    /// An earlier row has the same pattern.
    Duplicate {
        /// The position of that row in the order of addition, from 0.
        first: usize,
    },
    /// There are [`MAX_OVERRIDES`] rows already.
    TooMany,
}

impl fmt::Display for OverrideError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OverrideError::Pattern(pattern) => pattern.fmt(f),
            OverrideError::Limits(limits) => write!(f, "{limits} (write unlimited for no limit)"),
            OverrideError::Duplicate { .. } => {
                f.write_str("an earlier row has the same pattern; remove one of them")
            }
            OverrideError::TooMany => write!(
                f,
                "more than {MAX_OVERRIDES} overrides; match several keys with one row, such as \
                 bot-*, or use tiers"
            ),
        }
    }
}

impl std::error::Error for OverrideError {}

/// Why a key pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PatternError {
    /// The pattern is empty.
    Empty,
    /// The pattern has more bytes than a key can have.
    Long(usize),
    /// The pattern is a star alone.
    Everything,
    /// A star is not at the end.
    Star,
    /// A backslash does not precede a star, a slash or a backslash.
    Backslash,
    /// The address of a network has bits set beyond the prefix length.
    BeyondLength {
        /// The network that contains the address.
        network: Box<str>,
    },
    /// The prefix length of a network exceeds the bits of its address.
    Length {
        /// The number of bits of the address.
        max: u8,
    },
    /// The text before the slash looks like an address, but is not a complete one.
    Address,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PatternError::Empty => f.write_str("the pattern is empty; write a key such as user:42"),
            PatternError::Long(length) => {
                write!(f, "the pattern is {length} bytes long; a key has at most {MAX_KEY_LEN}")
            }
            PatternError::Everything => f.write_str(
                "* alone matches every key; change the limits of the policy instead",
            ),
            PatternError::Star => f.write_str(
                r"* matches the rest of a key and must come last; write \* for a literal star",
            ),
            PatternError::Backslash => f.write_str(
                r"a backslash must precede *, / or \; write \\ for a literal backslash",
            ),
            PatternError::BeyondLength { network } => {
                write!(f, "the address has bits set beyond the prefix length; write {network}")
            }
            PatternError::Length { max } => {
                write!(f, r"the prefix length is at most {max}; write \/ for a literal slash")
            }
            PatternError::Address => f.write_str(
                r"incomplete network address; write it as 10.0.0.0/8 or 2001:db8::/32, or write \/ for a literal slash",
            ),
        }
    }
}

impl std::error::Error for PatternError {}
